// What the simulator adds up for one kernel: the cores' clocks, the transfers of every level, and how both overlap.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "machine/block_machine.hpp"
#include "schedule/fragments.hpp"
#include "schedule/group_order.hpp"
#include "schedule/simulate.hpp"
#include "schedule/simulate_parts.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {

/// The sums of one simulation, in the order in which they are made: count_cores, count_waves, move_all, join.
struct Simulator::Run {
    const Simulator& s;
    const ScheduledKernel& k;
    const TileCounter counter;
    bool keeps_terms = false;
    Simulation out;
    std::int64_t threads = 1;
    bool beside_others = false;  ///< other resident CTAs use what one of them leaves idle
    std::optional<StreamK> stream_k;

    // ---- the cores
    Pipes sum;
    std::vector<double> core;     ///< clocks, by step
    std::vector<double> spilled;  ///< the same for tiles that do not stay in L1: nothing overlaps these clocks
    double on_tensor_cores = 0, waiting_for_it = 0;  ///< clocks of the tensor cores, and of waits for them
    /// Clocks in which tensor cores read shared memory (`shared`), and in which copies fill and empty it (`filled`).
    /// Neither delays the other. A product of 512×4096×4096 in tiles of 256×64 takes 26.5 µs on one H200. Added up,
    /// both would take 29.
    double shared = 0, filled = 0;
    StepSeconds iterations_of_steps;
    double copies = 0;
    BlockWork of_blocks;
    /// Where terms are kept: clocks of a statement on all its tiles, by pipe, and of the pipes together.
    struct OfStep {
        Pipes pipes;
        double tiles = 0, together = 0;
    };
    std::vector<OfStep> of_steps;
    std::vector<double> own_share;  ///< by scope: the fraction of the CTA's K blocks that a warpgroup runs

    // ---- the waves
    double latency = 0;  ///< clocks for which the warps of a CTA wait for their own results
    double clock = 1, groups = 1, starts = 0, workers = 1;
    double begun = 0;  ///< output tiles that are begun: one that is split has one part for each of its CTAs
    double share = 1, of_iterations = 1;
    CoresText text;

    // ---- the levels above: a level that holds what all cores work on at the same time is filled once, a smaller one
    // again and again
    std::vector<Moved> moved;
    double bytes_moved = 0, bytes_of_groups = 0;  ///< the latter: what several moves of a group bring counts once
    std::vector<TimeSum> waited, stood_still;     ///< by step
    std::vector<TimeSum> into;                    ///< by level
    std::vector<TimeSum> ahead_into;  ///< the same of what comes in ahead, whatever the core computes meanwhile
    std::vector<Traffic> traffic;     ///< by level
    bool flows = false;
    TimeSum flowing;                       ///< of what comes in and goes out, whatever the core computes meanwhile
    std::vector<TimeSum> stored;           ///< by step: of stores that are not pipelined across tiles
    TimeSum arrivals, ahead_arrivals;      ///< in which data arrives in the cores, which may share an answer
    TimeSum leaving;                       ///< of what goes out while the core computes
    double first_k_block = 0, chunks = 1;  ///< seconds of a core's first K block to come in, and its K blocks
    double tiles = 0;                      ///< K blocks of all output tiles
    double under_way = 0;                  ///< seconds, of the operand with the fewest outstanding copies
    double of_stages = 0;                  ///< seconds, of the operand whose stages take longest to come round

    Run(const Simulator& simulator, const ScheduledKernel& kernel, std::int64_t most_threads, std::int64_t walk_limit,
        bool explains)
        : s(simulator),
          k(kernel),
          counter(s.derived_.diagram, s.live_, s.extents_, k.sizes, walk_limit, nullptr, s.known_),
          keeps_terms(explains),
          beside_others(k.in_blocks() && !k.on_tensor_cores()),
          stream_k(chosen_stream_k(k)),
          core(k.steps.size()),
          spilled(k.steps.size()),
          iterations_of_steps{core, core},
          of_steps(explains ? k.steps.size() : 0),
          own_share(k.scopes.size(), 1),
          waited(k.steps.size(), TimeSum(explains)),
          stood_still(waited),
          into(s.core_level_ + 1, TimeSum(explains)),
          ahead_into(into),
          flowing(explains),
          stored(waited),
          arrivals(explains),
          ahead_arrivals(explains),
          leaving(explains) {
        out.groups = counter.groups();
        threads = s.threads_of_model(k, most_threads, out.groups);
        for (const std::string& path : s.pipe_names_) traffic.push_back({path});
    }

    [[nodiscard]] double seconds(double clocks) const { return clocks * of_iterations / (workers * share * clock); }

    void compute(StepId i, const Step& step) {
        const StatementWork& work = s.work_[at(step.atom)];
        counter.for_each_tile(
            s.work_axes_[at(step.atom)], work.loop, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
                const Pipes pipes = s.compute_clocks(k, step, work, tile);
                const double times = static_cast<double>(count) * own_share[at(step.scope)];
                const double alone = beside_others ? 0 : pipes.waits;
                const double together = beside_others
                                            ? s.beside({pipes.issue(), pipes.load + pipes.store, pipes.cache})
                                            : s.beside({pipes.arithmetic, pipes.load, pipes.store, pipes.cache});
                core[i] += times * (together / s.issue_share(k, step) + pipes.target + pipes.overhead + alone);
                if (k.atom(step).kind == AtomKind::mma)
                    on_tensor_cores += times * pipes.unit, waiting_for_it += times * pipes.overhead,
                        shared += times * pipes.shared;
                iterations_of_steps.latency[i] += times * s.latency_of_warpgroups(k, step, pipes.overhead);
                iterations_of_steps.core[i] -= k.atom(step).kind == AtomKind::mma ? times * pipes.overhead : 0;
                sum.load += times * pipes.load, sum.store += times * pipes.store;
                sum.cache += times * (pipes.cache + pipes.target), sum.overhead += times * (pipes.overhead + alone);
                if (beside_others)
                    of_blocks.chain_clocks += times * (s.chain_of_compute(k, step, work, tile) +
                                                       (step.synchronizes ? s.machine_.call_clocks.value : 0));
                for (std::size_t o = 0; o < num_op_kinds; ++o) sum.by_kind[o] += times * pipes.by_kind[o];
                if (!keeps_terms) return;
                OfStep& of = of_steps[i];
                of.pipes.add(times, pipes), of.tiles += static_cast<double>(count), of.together += times * together;
            });
    }
    void copy(StepId i, const Step& step) {
        const auto* load = std::get_if<Load>(step.statement);
        const auto* store = std::get_if<Store>(step.statement);
        if (!(load && !step.stays) && !store) return;
        const VariableId id = load ? load->variable : store->variable;
        counter.for_each_tile(axes_of(k.variable(id).dims), s.transferred(id, load != nullptr).loop,
                              [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
                                  const auto times = static_cast<double>(count);
                                  core[i] += times * s.copy_clocks(k, id, tile, load != nullptr);
                                  if (keeps_terms) of_steps[i].tiles += times;
                                  // In a kernel with loops, a tile outside of them leaves L1 before the next output
                                  // tile, whatever its size. So no size saves anything there.
                                  if (load && (step.scope > 0 || k.loops.empty()))
                                      spilled[i] += times * s.clocks_of_spilled_tile(k, id, tile);
                                  if (beside_others)
                                      of_blocks.chain_clocks += times *
                                                                (s.chain_of_copy(k, id, tile, load != nullptr) +
                                                                 (step.synchronizes ? s.machine_.call_clocks.value : 0));
                              });
        copies += core[i], sum.cache += spilled[i];
    }
    void count_cores() {
        for (const ScheduledLoop& l : k.loops) own_share[at(l.scope)] = 1 - fraction_of_skipped_blocks(k, l);
        for (const StepId i : k.steps.ids()) k.steps[i].atom >= 0 ? compute(i, k.steps[i]) : copy(i, k.steps[i]);
        leave_longest_chains(k, iterations_of_steps.latency);
    }

    void count_waves() {
        const std::vector<double>& latencies = iterations_of_steps.latency;
        latency = std::accumulate(latencies.begin(), latencies.end(), 0.0);
        clock = s.machine_.clock_hz.value, groups = static_cast<double>(out.groups);
        // A producer that copies for the next tile leaves no wait between tiles. A new CTA has to start, and waits for
        // its first copy.
        const bool goes_on = k.producer_role() && !k.has_block_a_group();
        const double begin = k.producer_role() ? k.unit.copies.bulk_clocks : 0;
        starts = beside_others || goes_on ? 0 : groups * (s.machine_.group_s.value * clock + begin);
        sum.overhead += starts;
        const std::int64_t cluster = k.cluster_blocks();
        const auto sharers = static_cast<double>(std::max<std::int64_t>(1, threads / cluster) * cluster);
        // A CPU's threads share its cores where there are more threads than cores.
        workers = k.in_blocks() ? sharers : std::min(sharers, s.machine_.cores.value);
        out.waves = k.has_uneven_groups() ? s.wave_quantization_of_uneven(k, counter, core, starts, sharers)
                    : stream_k            ? static_cast<double>(stream_k->most_k_blocks()) * sharers /
                                     (groups * static_cast<double>(stream_k->chunks))
                               : std::ceil(groups / sharers) * sharers / groups;
        begun = groups + (stream_k ? static_cast<double>(stream_k->num_split_tiles()) : 0);
        share = s.machine_.sustained_share.value * (threads > 1 ? s.machine_.together_share.value : 1);
        // Where CTAs share an SM, those of the last wave have more of it to themselves.
        of_iterations = beside_others ? 1 : out.waves;
        report_units();
        if (keeps_terms) text = cores_text();
        for (std::size_t i = 0; i < k.steps.size(); ++i)
            iterations_of_steps.core[i] = seconds(iterations_of_steps.core[i] + core[i]),
            iterations_of_steps.latency[i] = seconds(iterations_of_steps.latency[i]);
    }
    void report_units() {
        if (on_tensor_cores > 0) out.busy.push_back({s.name_of_tensor_core(k), seconds(on_tensor_cores)});
        for (std::size_t i = 0; i < num_op_kinds; ++i)
            if (sum.by_kind[i] > 0)
                out.busy.push_back({std::string(name(static_cast<OpKind>(i))), seconds(sum.by_kind[i])});
        out.busy.push_back({"loads", seconds(sum.load)});
        out.busy.push_back({"stores", seconds(sum.store)});
        out.busy.push_back({"copies", seconds(copies)});
        out.busy.push_back({"calls and loops", seconds(sum.overhead)});
        if (s.machine_.levels.size() > s.core_level_ + 1)
            out.busy.push_back({s.pipe_names_.back(), seconds(sum.cache)});
    }

    /// On a CPU: bytes that pass through a cache of so many cores from one output tile that reads a tile to the next
    /// that does.
    [[nodiscard]] double passing(const Moved& of, double cores) const {
        const double between = std::max(cores, groups_between_uses(k.group_order, k.variable(of.variable)));
        double bytes = 0;
        for (const Moved& m : moved) {
            const double all = m.bytes / groups * between * different_tiles(k.group_order, k.variable(m.variable), between),
                         ends = groups / m.parts;  // groups until a part of a table ends
            bytes += m.part > 0 ? std::min(all, m.part * std::ceil(between / ends)) : all;
        }
        return bytes;
    }
    void move(const Moved& m);
    void copy_by_producer(const Moved& m, double longest);
    void move_all() {
        moved = s.transfers(k, counter, workers, out.transfers);
        for (const Moved& m : moved) bytes_moved += m.bytes, bytes_of_groups += m.by_groups;
        flows = s.flows_through_first_cache(k, moved);
        for (const Moved& m : moved) move(m);
        const std::size_t last = s.core_level_;
        if (into[last].seconds() < arrivals.seconds()) into[last] = arrivals;
        if (ahead_into[last].seconds() < ahead_arrivals.seconds()) ahead_into[last] = ahead_arrivals;
        for (std::size_t l = 1; l <= last; ++l) {
            out.busy.push_back({s.pipe_names_[l], into[l].seconds()});
            out.traffic.push_back(traffic[l]);
        }
    }

    /// All statements, and those outside of loops. `storing`: more seconds for those that wait for their stores.
    struct InTurn {
        TimeSum total, outside;
        double storing = 0;
    };
    InTurn in_turn();
    [[nodiscard]] TimeSum beside_producer(const InTurn& turn, const TimeSum& ahead) const;
    [[nodiscard]] TimeSum tiles_in_scratch() const;
    [[nodiscard]] TimeSum joined_blocks();
    [[nodiscard]] TimeSum joined();
    TimeSum split_tiles(double total);
    void join();
    [[nodiscard]] Simulation simulated() {
        count_cores();
        count_waves();
        move_all();
        join();
        return std::move(out);
    }

    // ---- the terms
    /// Seconds that have a term of their own.
    [[nodiscard]] TimeSum part(double seconds, auto&& term) const {
        TimeSum out(keeps_terms);
        out.add(seconds, term);
        return out;
    }
    [[nodiscard]] CoresText cores_text() const;
    [[nodiscard]] std::string waves_text() const;
    [[nodiscard]] TimeSum terms_of_statement(StepId i) const;
    [[nodiscard]] TimeSum terms_of_step(StepId i, double panels) const;
    [[nodiscard]] TimeSum stores_left(double seconds) const;
    [[nodiscard]] TimeTerm crossing_term(const Moved& m, std::size_t level, double bytes, double seconds, double uneven) const;
};

/// Statements run one after the other. What a core computes hides only the transfers of the same statement. Among
/// several panels only the first one's work does, as the others find the data in the cache.
Simulator::Run::InTurn Simulator::Run::in_turn() {
    InTurn turn{TimeSum(keeps_terms), TimeSum(keeps_terms)};
    turn.total.add(seconds(starts),
                   [&] { return TimeTerm{"starts of tiles", 0, text.of_waves(seconds(starts), groups, "tiles"), true}; });
    out.core_seconds = turn.total.seconds();
    for (const StepId i : k.steps.ids()) {
        const Step& step = k.steps[i];
        // Overridden fused statements may be where no axis has panels. The rules refuse them once the plan is made.
        const bool in_run = step.atom >= 0 && k.atom(step).run >= 0 && k.schedule.vector_axis >= 0;
        const double panels = in_run ? ceil_of(static_cast<double>(k.span(k.schedule.vector_axis, step.scope).tile),
                                               static_cast<double>(k.panel()))
                                     : 1;
        const double here = seconds(core[i]), first = here / panels, alone = seconds(spilled[i]),
                     waits = waited[i].seconds();
        out.core_seconds += here + alone;
        const double of_step = s.beside({first, waits}) + here - first + alone + stood_still[i].seconds();
        const auto terms = [&] { return terms_of_step(i, panels); };
        turn.total.add(of_step, terms);
        turn.storing += s.beside({first, waits + stored[i].seconds()}) - s.beside({first, waits});
        if (step.scope == 0) turn.outside.add(of_step, terms);
    }
    return turn;
}

TimeSum Simulator::Run::beside_producer(const InTurn& turn, const TimeSum& ahead) const {
    const double turns = turn.total.seconds() - turn.outside.seconds();
    TimeSum out = turn.outside;
    out.add(seconds(starts),
            [&] { return TimeTerm{"starts of tiles", 0, text.of_waves(seconds(starts), groups, "tiles"), true}; });
    const double between = latency > 0 ? begun / workers * s.clocks_between_groups(k) / clock : 0;
    out.add(between, [&] { return TimeTerm{"from a tile to the next", 0, text.each(between, begun, "tiles")}; });
    const TimeSum warpgroups = s.seconds_of_warpgroups(k, {.unit = seconds(on_tensor_cores),
                                                           .special = seconds(sum.special()),
                                                           .core = turns - seconds(starts) - seconds(waiting_for_it),
                                                           .latency = seconds(latency),
                                                           .stages = of_stages,
                                                           .alone = begun / std::max(begun, tiles),
                                                           .own = *std::min_element(own_share.begin(), own_share.end()),
                                                           .text = keeps_terms ? &text : nullptr,
                                                           .unit_name = keeps_terms ? name_of_tensor_core(k) : std::string(),
                                                           .k_blocks = std::max(1.0, tiles)});
    const TimeSum outstanding = part(under_way, [&] {
        return TimeTerm{"copies outstanding", 0, text.of_waves(under_way, std::max(1.0, tiles), "K blocks"), true};
    });
    out.add(TimeSum::overlapped(std::max({ahead.seconds(), leaving.seconds(), under_way, warpgroups.seconds()}), 0,
                                {ahead, leaving, outstanding, warpgroups}, "the loop"));
    return out;
}

/// Groups of loads that stand beside each other in a tile's statements: the next group waits for what is between.
static double load_phases(const ScheduledKernel& k) {
    bool was_load = false;
    int phases = 0;
    for (const StepId i : k.steps.ids()) {
        const bool is_load = std::holds_alternative<Load>(*k.steps[i].statement);
        phases += is_load && !was_load ? 1 : 0;
        was_load = is_load;
    }
    return std::max(1, phases);
}

/// Seconds of statements whose tiles are larger than the CTA's shared memory. They lie in scratch memory, which is
/// global.
TimeSum Simulator::Run::tiles_in_scratch() const {
    if (static_cast<double>(k.memory_bytes()) <= s.usable_bytes()) return TimeSum(keeps_terms);
    const double vectors = sum.load / s.load_clocks_ + sum.store / s.store_clocks_,
                 bytes = vectors * static_cast<double>(k.lanes * k.value_bytes()) + bytes_moved,
                 taken = bytes / s.machine_.levels[1].bandwidth_bytes_per_s.value;
    return part(taken, [&] {
        return TimeTerm{"tiles in scratch memory", 0,
                        fmt::format("{}: they take {} KiB, a CTA has {}", transfer_text(bytes, taken),
                                    number_text(static_cast<double>(k.memory_bytes()) / 1024),
                                    number_text(s.usable_bytes() / 1024))};
    });
}

/// Seconds of CTAs that use what others leave idle.
TimeSum Simulator::Run::joined_blocks() {
    for (const double clocks : core) of_blocks.core_clocks += clocks;
    if (k.has_uneven_groups()) of_blocks.uneven_waves = out.waves;
    of_blocks.load_phases = load_phases(k);
    out.core_seconds = s.seconds_of_blocks(groups, workers, of_blocks).seconds();
    BlockTerms terms{TimeSum(keeps_terms), TimeSum(keeps_terms)};
    // CTAs that reduce whole rows ask for all of a row at once. Nobody waits for their stores but at the busiest level.
    of_blocks.in_bursts = k.loops.empty() &&
                          any_of(k.steps, [&](const Step& step) { return step.atom >= 0 && k.atom(step).across; });
    for (const StepId i : k.steps.ids())
        if (!of_blocks.in_bursts || !std::holds_alternative<Store>(*k.steps[i].statement))
            terms.memory.add(waited[at(i)]);
    terms.memory.add(tiles_in_scratch());
    of_blocks.memory_seconds = of_blocks.all_memory_seconds = terms.memory.seconds();
    for (const TimeSum& level : into)
        of_blocks.all_memory_seconds = std::max(of_blocks.all_memory_seconds, level.seconds());
    for (std::size_t i = 0; i < k.steps.size() && keeps_terms; ++i) terms.core.add(terms_of_statement(StepId::of(i)));
    return s.seconds_of_blocks(groups, workers, of_blocks, keeps_terms ? &terms : nullptr);
}

TimeSum Simulator::Run::joined() {
    if (beside_others) return joined_blocks();
    InTurn turn = in_turn();
    const double loops = turn.total.seconds() - turn.outside.seconds(), in_shared = seconds(std::max(shared, filled));
    TimeSum ahead = part(in_shared, [&] {
        return TimeTerm{shared >= filled ? "reads of operands from shared memory" : "copies into shared memory", 0,
                        text.of_waves(in_shared, std::max(1.0, tiles), "K blocks"), true};
    });
    for (const TimeSum& level : ahead_into)
        ahead = TimeSum::overlapped(s.beside({ahead.seconds(), level.seconds()}), s.exponent_, {ahead, level});
    TimeSum total(keeps_terms);
    if (k.producer_role()) {
        total = beside_producer(turn, ahead);
    } else {
        const double together = s.beside({turn.total.seconds(), ahead.seconds(), leaving.seconds(), flowing.seconds()}),
                     with_stores = turn.total.seconds() + turn.storing;
        if (with_stores > together) turn.total.add(turn.storing, [&] { return stores_left(turn.storing); });
        total = TimeSum::overlapped(std::max(together, with_stores), s.exponent_, {turn.total, ahead, leaving, flowing},
                                    "all statements");
    }
    // What is prefetched, waited for and stored shares one pipe, however well each part overlaps computation.
    if (!k.in_blocks())
        for (std::size_t l = 1; l <= s.core_level_; ++l)
            total = TimeSum::overlapped(std::max(total.seconds(), into[l].seconds()), 0, {total, into[l]},
                                        "all statements");
    // Before the first K block there is nothing to compute, and behind the last one nothing to copy. With producer
    // warps, which copy for the next tile meanwhile, this time is lost once. Else it is lost in each tile, unless other
    // resident CTAs have work.
    if (ahead.seconds() > 0) {
        const double times = k.producer_role() ? 1 : std::ceil(groups / workers) / blocks_a_core(s.machine_),
                     once = std::min(first_k_block, loops / chunks) + k.unit.copies.bulk_clocks / clock;
        total.add(times * once, [&] {
            return TimeTerm{"first K block comes in", 0,
                            fmt::format("{} × {} clocks at {}, {} of them the copy's latency", number_text(times),
                                        number_text(once * clock), text.at, number_text(k.unit.copies.bulk_clocks))};
        });
    }
    return total;
}

/// Seconds that split tiles take beside the `total`.
TimeSum Simulator::Run::split_tiles(double total) {
    const StreamK& cut = *stream_k;
    const auto values = static_cast<double>(stream_k_values(k, cut)), bytes = 4 * values;
    // In the rounds that are split, transfers from global memory overlap these rounds only, not the whole kernel.
    const double from_memory = s.bytes_out_of_step(k, cut, moved),
                 of_rounds = total * static_cast<double>(cut.groups) / groups;
    const double handed_over = s.seconds_of_parts(k, cut, workers),
                 parts = handed_over +
                         s.beside({of_rounds, from_memory / s.machine_.levels[1].bandwidth_bytes_per_s.value}) - of_rounds;
    out.traffic.front().loaded_bytes += from_memory;
    out.transfers += 2 * values;
    out.traffic.back().loaded_bytes += bytes, out.traffic.back().stored_bytes += bytes;
    out.busy.push_back({"parts of groups", parts});
    return part(parts, [&] {
        TimeSum terms(true);
        terms.add(handed_over, [&] {
            return TimeTerm{"states of split tiles", 0,
                            fmt::format("{} through {}, and the wait for each other",
                                        transfer_text(2 * bytes, handed_over), s.pipe_names_[s.core_level_])};
        });
        terms.add(parts - handed_over, [&] {
            return TimeTerm{"K blocks that CTAs read at different times", 0,
                            fmt::format("{} MB into {} more", number_text(from_memory / 1e6), s.machine_.levels[1].name)};
        });
        return terms;
    });
}

void Simulator::Run::join() {
    TimeSum total = joined();
    if (stream_k) total.add(split_tiles(total.seconds()));
    const bool starts_cores = threads > 1 || k.in_blocks();
    out.launch_seconds = starts_cores ? s.machine_.launch_s.value : s.machine_.group_s.value;
    out.busy.push_back({"launch", out.launch_seconds});
    total.add(out.launch_seconds, [&] {
        return TimeTerm{"launch", 0, fmt::format("'{}' of the machine", starts_cores ? "launch" : "group")};
    });
    out.seconds = total.seconds();
    std::stable_sort(out.busy.begin(), out.busy.end(), [](const Busy& a, const Busy& b) { return a.seconds > b.seconds; });
    if (keeps_terms) out.terms = with_waves_apart(total.terms(), of_iterations, waves_text());
}

CoresText Simulator::Run::cores_text() const {
    const std::string sustained = share == 1 ? "" : fmt::format(" × {:.3g} sustained", share);
    return {workers, of_iterations, clock * share,
            !k.in_blocks()                  ? "cores"
            : blocks_a_core(s.machine_) > 1 ? "CTAs"
                                            : "SMs",
            fmt::format("{:.4g} GHz{}", clock / 1e9, sustained)};
}

std::string Simulator::Run::waves_text() const {
    if (k.has_uneven_groups())
        return fmt::format("{} tiles of unequal lengths: the last of {} {} ends at {:.4g} times the mean",
                           number_text(groups), number_text(workers), text.names, out.waves);
    const double work = stream_k ? groups * static_cast<double>(stream_k->chunks) : groups;
    return fmt::format("{} {} on {} {}: {} on the busiest, {} on the mean", number_text(work),
                       stream_k ? "K blocks" : "tiles", number_text(workers), text.names,
                       number_text(std::round(work / workers * out.waves)), number_text(work / workers));
}

/// What the statement's clocks consist of, if no tile is waited for.
TimeSum Simulator::Run::terms_of_statement(StepId i) const {
    const OfStep& of = of_steps[i];
    const Pipes& pipes = of.pipes;
    const std::string& variable = k.variable(variable_of(k.steps[i])).name;
    const auto named = [&](const std::string& name, double clocks, const std::string& more = "") {
        return part(seconds(clocks), [&] {
            return TimeTerm{name, 0, text.of_waves(seconds(clocks), std::max(1.0, of.tiles), "tiles") + more, true};
        });
    };
    if (k.steps[i].atom < 0) return named("copy " + variable, core[i]);
    std::vector<std::string> kinds;
    if (pipes.unit > 0)
        kinds.push_back(fmt::format("{} {}", name_of_tensor_core(k), number_text(pipes.unit / of.tiles)));
    for (std::size_t o = 0; o < num_op_kinds; ++o)
        if (pipes.by_kind[o] > 0)
            kinds.push_back(fmt::format("{} {}", name(static_cast<OpKind>(o)), number_text(pipes.by_kind[o] / of.tiles)));
    TimeSum out = TimeSum::overlapped(
        seconds(of.together), s.exponent_,
        {named(variable + ": arithmetic", pipes.arithmetic, kinds.empty() ? "" : ": " + napkin::join(kinds, ", ")),
         named(variable + ": loads", pipes.load), named(variable + ": stores", pipes.store),
         named(variable + ": cache", pipes.cache)});
    out.add(named(variable + ": sums into L1 and out", pipes.target));
    out.add(named(variable + ": calls and loops", pipes.overhead + (beside_others ? 0 : pipes.waits)));
    return out;
}

/// The statement's clocks, of which the first of so many panels overlap what it waits for.
TimeSum Simulator::Run::terms_of_step(StepId i, double panels) const {
    const TimeSum here = terms_of_statement(i), first = here.scaled(1 / panels);
    const std::string& variable = k.variable(variable_of(k.steps[i])).name;
    TimeSum out = TimeSum::overlapped(s.beside({first.seconds(), waited[i].seconds()}), s.exponent_, {first, waited[i]},
                                      variable.c_str());
    out.add(here.scaled(1 - 1 / panels));
    out.add(seconds(spilled[i]), [&] {
        return TimeTerm{variable + " leaves L1", 0, text.of_waves(seconds(spilled[i]), of_steps[i].tiles, "tiles"), true};
    });
    out.add(stood_still[i]);
    return out;
}

/// The part of all stores that takes so many seconds in which nothing is computed.
TimeSum Simulator::Run::stores_left(double seconds) const {
    TimeSum all(true);
    for (const TimeSum& of_step : stored) all.add(of_step);
    const double left = seconds / all.seconds();
    return all.scaled(left, fmt::format(" × {:.3g} that no statement hides", left));
}

/// What crosses the pipe into a level, or out of it. `uneven`: the wave quantization factor that the seconds contain.
TimeTerm Simulator::Run::crossing_term(const Moved& m, std::size_t level, double bytes, double seconds, double uneven) const {
    return {fmt::format("{} {}: {}", m.is_store ? "store" : "load", k.variable(m.variable).name, s.pipe_names_[level]),
            0, transfer_text(bytes, seconds / uneven), uneven != 1};
}

void Simulator::Run::move(const Moved& m) {
    TimeSum longest(keeps_terms);
    double later = s.machine_.levels[0].latency_s.value;  // latency, for what was moved before
    for (std::size_t l = 1; l <= s.core_level_; ++l) {
        const Level& level = s.machine_.levels[l];
        const double sharing = std::min(s.machine_.cores.value / level.instances.value, workers);
        const bool keeps = l < s.core_level_ && bytes_of_groups / groups * sharing <= level.capacity_bytes.value;
        const bool keeps_for_others = keeps && !k.in_blocks() && passing(m, sharing) <= level.capacity_bytes.value;
        // A CTA may count on L2 for what it read itself. For what others read it may only count on tiles that run
        // together.
        const double from_above = l < s.core_level_ ? std::max(m.unique, (keeps ? m.by_groups : m.bytes) * m.together)
                                  : m.stays ? std::min(m.bytes, (m.part > 0 ? m.part * m.parts : m.unique) * workers)
                                            : m.bytes;
        // All CTAs of a cluster get what one of them asks for.
        const double crossing = (keeps_for_others ? m.unique : from_above) * (l == s.core_level_ ? m.of_a_cluster : 1);
        // CTAs with fewer tiles wait for the others, also at the pipe that each SM has for itself.
        const double uneven = k.in_blocks() && !beside_others && l == s.core_level_ ? out.waves : 1;
        const double asked = crossing * (l == s.core_level_ ? m.lines : 1) * uneven;
        const double time = asked * s.seconds_a_byte(l, workers, m),
                     arrival = l == s.core_level_ && !m.is_store ? asked * s.seconds_of_arrival(workers) : 0;
        const auto crosses = [&](double of) {
            return part(of, [&] { return crossing_term(m, l, crossing, of, uneven); });
        };
        arrivals.add(crosses(arrival));
        if (m.is_ahead) ahead_arrivals.add(crosses(arrival));
        (m.is_store ? traffic[l].stored_bytes : traffic[l].loaded_bytes) += crossing;
        into[l].add(crosses(time));
        if (keeps) later = level.latency_s.value;
        const bool is_under_way = m.is_ahead || (m.is_fetched && l < s.core_level_);
        if (const double taken = std::max(time, arrival); m.is_ahead || !is_under_way)
            longest = TimeSum::overlapped(s.beside({longest.seconds(), taken}), s.exponent_, {longest, crosses(taken)});
        if (is_under_way && !m.is_store) ahead_into[l].add(crosses(time));
    }
    if (flows && (m.is_store || s.groups_ahead(k, m.variable) > 0))
        flowing.add(longest);
    else if (!m.is_ahead)
        waited[m.step].add(longest);
    if (flows && m.is_store && k.steps[m.step].deferred < 0) stored[m.step].add(longest);
    if (m.is_ahead && m.is_store) leaving.add(longest);
    if (m.is_ahead) filled += s.clocks_of_shared(k, m.bytes);
    if (m.is_ahead && !m.is_store && k.producer_role()) copy_by_producer(m, longest.seconds());
    if (m.is_ahead && !m.is_store)
        first_k_block += longest.seconds() / std::max(1.0, m.tiles / workers),
            chunks = std::max(chunks, m.tiles / workers), tiles = std::max(tiles, m.tiles);
    const auto stand_still = [&](double taken, double times, bool in_waves) {
        stood_still[m.step].add(taken, [&] {
            return TimeTerm{"waits for " + k.variable(m.variable).name, 0,
                            in_waves ? text.of_waves(taken, times, "waits") : text.each(taken, times, "waits"), in_waves};
        });
    };
    if (m.asks > 0) stand_still(seconds(m.asks * k.unit.copies.loaded_bulk_clocks), m.asks, true);
    if (m.waits > 0)
        stand_still(m.waits / m.bytes / workers *
                        (m.unique * s.machine_.levels[0].latency_s.value + (m.bytes - m.unique) * later),
                    m.waits, false);
}

void Simulator::Run::copy_by_producer(const Moved& m, double longest) {
    const CopyAtoms& bulk = k.unit.copies;
    const double of_tile = (m.unique * bulk.bulk_clocks + (m.bytes - m.unique) * bulk.cached_bulk_clocks) / m.bytes,
                 answer = seconds(of_tile * m.tiles);
    if (k.steps[m.step].scope > 0)
        out.copies.push_back({m.variable, of_tile, longest / blocks_a_core(s.machine_) * clock * workers / m.tiles});
    of_stages = std::max(of_stages,
                         s.seconds_of_stages(k, m, answer, longest / blocks_a_core(s.machine_), iterations_of_steps));
    // Where a loop takes tiles as fast as they come, all SMs copy, and each copy takes longer. Copies are
    // outstanding for the stages that no iteration holds. An iteration holds its own stage, and also the
    // previous one where products are waited for an iteration later. A stage that is released early counts for
    // a part of the iteration.
    constexpr double least_under_way = 0.5;
    const ScopeId scope = k.steps[m.step].scope;
    const int stages = k.place(m.variable).stages;
    if (only_adds_products(k, scope))
        under_way = std::max(
            under_way,
            seconds(bulk.loaded_bulk_clocks * m.tiles) / blocks_a_core(s.machine_) /
                std::max(least_under_way, static_cast<double>(stages - (outlasts_iterations(k, scope, stages) ? 2 : 1))));
    // Threads look up four rows at a time, and ask for them once they know where these lie. Measured on one H200 on
    // 2026-12-01: for experts, 64 rows take 1,500 clocks, of 128 bytes or of 256.
    constexpr double clocks_of_rows = 1500, rows_together = 4, threads_a_row = 8;
    if (const auto tile = operand_tile(k, m.variable); tile && tile->is_of_single_rows) {
        const double at_once = rows_together * static_cast<double>(k.producer_role()->workers * k.unit.warp_threads) /
                               threads_a_row;
        under_way = std::max(under_way,
                             seconds(clocks_of_rows * std::ceil(static_cast<double>(tile->rows) / at_once) * m.tiles) /
                                 blocks_a_core(s.machine_));
    }
}

Simulation Simulator::run(const ScheduledKernel& k, std::int64_t most_threads, std::int64_t walk_limit) const {
    return Run(*this, k, most_threads, walk_limit, false).simulated();
}

Simulation Simulator::explain(const ScheduledKernel& k, std::int64_t most_threads) const {
    return Run(*this, k, most_threads, std::int64_t{1} << 22, true).simulated();
}

}  // namespace napkin
