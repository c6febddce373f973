// What the simulator adds up for one kernel: the cores' clocks, the transfers of every level, and how both overlap.
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

namespace napkin {

/// The sums of one simulation, in the order in which they are made: count_cores, count_waves, move_all, join.
struct Simulator::Run {
    const Simulator& s;
    const ScheduledKernel& k;
    const TileCounter counter;
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
    std::vector<double> own_share;  ///< by scope: the fraction of the CTA's K blocks that a warpgroup runs

    // ---- the waves
    double latency = 0;  ///< clocks for which the warps of a CTA wait for their own results
    double clock = 1, groups = 1, starts = 0, workers = 1;
    double begun = 0;  ///< output tiles that are begun: one that is split has one part for each of its CTAs
    double share = 1, of_iterations = 1;

    // ---- the levels above: a level that holds what all cores work on at the same time is filled once, a smaller one
    // again and again
    std::vector<Moved> moved;
    double bytes_moved = 0;
    std::vector<double> waited, stood_still;  ///< seconds, by step
    std::vector<double> into;                 ///< seconds, by level
    std::vector<double> ahead_into;           ///< the same of what comes in ahead, whatever the core computes meanwhile
    std::vector<Traffic> traffic;             ///< by level
    bool flows = false;
    double flowing = 0;          ///< of what comes in and goes out, whatever the core computes meanwhile
    std::vector<double> stored;  ///< by step: of stores that are not pipelined across tiles, beside their own statement
    double arrivals = 0, ahead_arrivals = 0;  ///< seconds in which data arrives in the cores, which may share an answer
    double leaving = 0;                       ///< seconds of what goes out while the core computes
    double first_k_block = 0, chunks = 1;     ///< seconds of a core's first K block to come in, and its K blocks
    double tiles = 0;                         ///< K blocks of all output tiles
    double under_way = 0;                     ///< seconds, of the operand with the fewest outstanding copies
    double of_stages = 0;                     ///< seconds, of the operand whose stages take longest to come round

    Run(const Simulator& simulator, const ScheduledKernel& kernel, std::int64_t most_threads, std::int64_t walk_limit)
        : s(simulator),
          k(kernel),
          counter(s.derived_.diagram, s.live_, s.extents_, k.sizes, walk_limit, nullptr, s.known_),
          beside_others(k.in_blocks() && !k.on_tensor_cores()),
          stream_k(chosen_stream_k(k)),
          core(k.steps.size()),
          spilled(k.steps.size()),
          iterations_of_steps{core, core},
          own_share(k.scopes.size(), 1),
          waited(k.steps.size()),
          stood_still(k.steps.size()),
          into(s.core_level_ + 1),
          ahead_into(s.core_level_ + 1),
          stored(k.steps.size()) {
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
                core[i] += times * (s.beside({pipes.arithmetic, pipes.load, pipes.store, pipes.cache}) + pipes.target +
                                    pipes.overhead + alone);
                if (k.atom(step).kind == AtomKind::matrix)
                    on_tensor_cores += times * pipes.unit, waiting_for_it += times * pipes.overhead,
                        shared += times * pipes.shared;
                iterations_of_steps.latency[i] += times * s.latency_of_warpgroups(k, step, pipes.overhead);
                iterations_of_steps.core[i] -= k.atom(step).kind == AtomKind::matrix ? times * pipes.overhead : 0;
                sum.load += times * pipes.load, sum.store += times * pipes.store;
                sum.cache += times * (pipes.cache + pipes.target), sum.overhead += times * (pipes.overhead + alone);
                if (beside_others)
                    of_blocks.chain_clocks += times * (s.chain_of_compute(k, step, work, tile) +
                                                       (step.synchronizes ? s.machine_.call_clocks.value : 0));
                for (std::size_t o = 0; o < num_op_kinds; ++o) sum.by_kind[o] += times * pipes.by_kind[o];
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
        for (const Moved& m : moved)
            bytes += m.bytes / groups * between * different_tiles(k.group_order, k.variable(m.variable), between);
        return bytes;
    }
    void move(const Moved& m);
    void copy_by_producer(const Moved& m, double longest);
    void move_all() {
        moved = s.transfers(k, counter, workers, out.transfers);
        for (const Moved& m : moved) bytes_moved += m.bytes;
        flows = s.flows_through_first_cache(k, moved);
        for (const Moved& m : moved) move(m);
        const std::size_t last = s.core_level_;
        into[last] = std::max(into[last], arrivals);
        ahead_into[last] = std::max(ahead_into[last], ahead_arrivals);
        for (std::size_t l = 1; l <= last; ++l) {
            out.busy.push_back({s.pipe_names_[l], into[l]});
            out.traffic.push_back(traffic[l]);
        }
    }

    /// Seconds of all statements, and the part of them outside of loops. `storing`: more for those that wait for their
    /// stores.
    struct InTurn {
        double total = 0, outside = 0, storing = 0;
    };
    /// Statements run one after the other. What a core computes hides only the transfers of the same statement. Among
    /// several panels only the first one's work does, as the others find the data in the cache.
    InTurn in_turn() {
        double total = seconds(starts), outside = 0, storing = 0;
        out.core_seconds = total;
        for (const StepId i : k.steps.ids()) {
            const Step& step = k.steps[i];
            // Overridden fused statements may be where no axis has panels. The rules refuse them once the plan is made.
            const bool in_run = step.atom >= 0 && k.atom(step).run >= 0 && k.schedule.vector_axis >= 0;
            const double panels = in_run ? ceil_of(static_cast<double>(k.span(k.schedule.vector_axis, step.scope).tile),
                                                   static_cast<double>(k.panel()))
                                         : 1;
            const double here = seconds(core[i]), first = here / panels, alone = seconds(spilled[i]);
            out.core_seconds += here + alone;
            const double of_step = s.beside({first, waited[i]}) + here - first + alone + stood_still[i];
            total += of_step;
            storing += s.beside({first, waited[i] + stored[i]}) - s.beside({first, waited[i]});
            if (step.scope == 0) outside += of_step;
        }
        return {total, outside, storing};
    }
    [[nodiscard]] double beside_producer(const InTurn& turn, double ahead) const {
        const double turns = turn.total - turn.outside, outside = turn.outside;
        return outside + seconds(starts) + (latency > 0 ? begun / workers * s.clocks_between_groups(k) / clock : 0) +
               std::max({ahead, leaving, under_way,
                         s.seconds_of_warpgroups(k, {.unit = seconds(on_tensor_cores),
                                                     .special = seconds(sum.special()),
                                                     .core = turns - seconds(starts) - seconds(waiting_for_it),
                                                     .latency = seconds(latency),
                                                     .stages = of_stages,
                                                     .alone = begun / std::max(begun, tiles),
                                                     .own = *std::min_element(own_share.begin(), own_share.end())})});
    }
    /// Seconds of CTAs that use what others leave idle.
    [[nodiscard]] double joined_blocks() {
        for (const double clocks : core) of_blocks.core_clocks += clocks;
        out.core_seconds = s.seconds_of_blocks(groups, workers, of_blocks);
        for (const double of_step : waited) of_blocks.memory_seconds += of_step;
        return s.seconds_of_blocks(groups, workers, of_blocks);
    }
    [[nodiscard]] double joined() {
        if (beside_others) return joined_blocks();
        const InTurn turn = in_turn();
        double ahead = seconds(std::max(shared, filled));
        for (const double time : ahead_into) ahead = s.beside({ahead, time});
        double total = k.producer_role()
                           ? beside_producer(turn, ahead)
                           : std::max(s.beside({turn.total, ahead, leaving, flowing}), turn.total + turn.storing);
        // What is prefetched, waited for and stored shares one pipe, however well each part overlaps computation.
        if (!k.in_blocks())
            for (std::size_t l = 1; l <= s.core_level_; ++l) total = std::max(total, into[l]);
        // Before the first K block there is nothing to compute, and behind the last one nothing to copy. With producer
        // warps, which copy for the next tile meanwhile, this time is lost once. Else it is lost in each tile, unless
        // other resident CTAs have work.
        if (ahead > 0)
            total += (k.producer_role() ? 1 : std::ceil(groups / workers) / blocks_a_core(s.machine_)) *
                     (std::min(first_k_block, (turn.total - turn.outside) / chunks) + k.unit.copies.bulk_clocks / clock);
        return total;
    }
    /// Seconds that split tiles take beside the `total`.
    double split_tiles(double total) {
        const StreamK& cut = *stream_k;
        const auto values = static_cast<double>(stream_k_values(k, cut)), bytes = 4 * values;
        // In the rounds that are split, transfers from global memory overlap these rounds only, not the whole kernel.
        const double from_memory = s.bytes_out_of_step(k, cut, moved),
                     of_rounds = total * static_cast<double>(cut.groups) / groups;
        const double parts = s.seconds_of_parts(k, cut, workers) +
                             s.beside({of_rounds, from_memory / s.machine_.levels[1].bandwidth_bytes_per_s.value}) -
                             of_rounds;
        out.traffic.front().loaded_bytes += from_memory;
        out.transfers += 2 * values;
        out.traffic.back().loaded_bytes += bytes, out.traffic.back().stored_bytes += bytes;
        out.busy.push_back({"parts of groups", parts});
        return parts;
    }
    void join() {
        double total = joined();
        if (stream_k) total += split_tiles(total);
        out.launch_seconds = threads > 1 || k.in_blocks() ? s.machine_.launch_s.value : s.machine_.group_s.value;
        out.busy.push_back({"launch", out.launch_seconds});
        out.seconds = total + out.launch_seconds;
        std::stable_sort(out.busy.begin(), out.busy.end(),
                         [](const Busy& a, const Busy& b) { return a.seconds > b.seconds; });
    }
};

void Simulator::Run::move(const Moved& m) {
    double longest = 0, later = s.machine_.levels[0].latency_s.value;  // latency, for what was moved before
    for (std::size_t l = 1; l <= s.core_level_; ++l) {
        const Level& level = s.machine_.levels[l];
        const double sharing = std::min(s.machine_.cores.value / level.instances.value, workers);
        const bool keeps = l < s.core_level_ && bytes_moved / groups * sharing <= level.capacity_bytes.value;
        const bool keeps_for_others = keeps && !k.in_blocks() && passing(m, sharing) <= level.capacity_bytes.value;
        // A CTA may count on L2 for what it read itself. For what others read it may only count on tiles that run
        // together.
        const double from_above = l < s.core_level_ ? std::max(m.unique, (keeps ? m.by_groups : m.bytes) * m.together)
                                  : m.stays         ? std::min(m.bytes, m.unique * workers)
                                                    : m.bytes;
        // All CTAs of a cluster get what one of them asks for.
        const double crossing = (keeps_for_others ? m.unique : from_above) * (l == s.core_level_ ? m.of_a_cluster : 1);
        // CTAs with fewer tiles wait for the others, also at the pipe that each SM has for itself.
        const double uneven = k.in_blocks() && !beside_others && l == s.core_level_ ? out.waves : 1;
        const double time = crossing * s.seconds_a_byte(l, workers, m) * uneven,
                     arrival = l == s.core_level_ && !m.is_store ? crossing * s.seconds_of_arrival(workers) * uneven : 0;
        arrivals += arrival;
        if (m.is_ahead) ahead_arrivals += arrival;
        (m.is_store ? traffic[l].stored_bytes : traffic[l].loaded_bytes) += crossing;
        into[l] += time;
        if (keeps) later = level.latency_s.value;
        const bool is_under_way = m.is_ahead || (m.is_fetched && l < s.core_level_);
        if (m.is_ahead || !is_under_way) longest = s.beside({longest, std::max(time, arrival)});
        if (is_under_way && !m.is_store) ahead_into[l] += time;
    }
    if (flows && (m.is_store || s.groups_ahead(k, m.variable) > 0))
        flowing += longest;
    else if (!m.is_ahead)
        waited[m.step] += longest;
    if (flows && m.is_store && k.steps[m.step].deferred < 0) stored[m.step] += longest;
    if (m.is_ahead && m.is_store) leaving += longest;
    if (m.is_ahead) filled += s.clocks_of_shared(k, m.bytes);
    if (m.is_ahead && !m.is_store && k.producer_role()) copy_by_producer(m, longest);
    if (m.is_ahead && !m.is_store)
        first_k_block += longest / std::max(1.0, m.tiles / workers), chunks = std::max(chunks, m.tiles / workers),
                                                                     tiles = std::max(tiles, m.tiles);
    if (m.asks > 0) stood_still[m.step] += seconds(m.asks * k.unit.copies.loaded_bulk_clocks);
    if (m.waits > 0)
        stood_still[m.step] += m.waits / m.bytes / workers *
                               (m.unique * s.machine_.levels[0].latency_s.value + (m.bytes - m.unique) * later);
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
}

Simulation Simulator::run(const ScheduledKernel& k, std::int64_t most_threads, std::int64_t walk_limit) const {
    Run run(*this, k, most_threads, walk_limit);
    run.count_cores();
    run.count_waves();
    run.move_all();
    run.join();
    return std::move(run.out);
}

}  // namespace napkin
