#include "schedule/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "machine/block_machine.hpp"
#include "schedule/error_function.hpp"
#include "schedule/fragments.hpp"
#include "schedule/group_order.hpp"
#include "schedule/maxima.hpp"
#include "schedule/quotients.hpp"
#include "schedule/simulate_parts.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"

namespace napkin {

Simulator::Simulator(const Derived& derived, const Kernel& kernel, const TileKernel& tiles, const Extents& extents,
                     const Machine& machine, KnownCounts* known)
    : derived_(derived), kernel_(kernel), extents_(extents), machine_(machine), known_(known), live_(liveness(tiles)) {
    work_ = statement_work(derived.diagram, tiles);
    for (const CoreVariable& v : live_.variables)
        if (derived.diagram.array(v.array).type == DType::f64) type_ = DType::f64;
    lanes_ = std::max<std::int64_t>(1, machine.lanes(type_));
    core_level_ = core_memory_level(machine);
    const auto clocks = [&](const std::string& unit) {
        return static_cast<double>(lanes_) / per_clock(machine, unit, type_);
    };
    for (std::size_t k = 0; k < num_op_kinds; ++k)
        clocks_a_vector_[k] = clocks(std::string(name(static_cast<OpKind>(k))));
    load_clocks_ = clocks("load"), store_clocks_ = clocks("store"), broadcast_clocks_ = clocks("broadcast");
    nonpositive_clocks_ = clocks("exp_nonpositive");
    exponent_ = std::log(2.0) / std::log(machine.beside_factor.value);
    for (const StatementWork& s : work_) {
        std::vector<AxisId> axes = s.target_axes;
        axes.insert(axes.end(), s.reduce_axes.begin(), s.reduce_axes.end());
        for (const auto& operand : s.operands) axes.insert(axes.end(), operand.axes.begin(), operand.axes.end());
        std::sort(axes.begin(), axes.end());
        axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
        work_axes_.push_back(std::move(axes));
    }
    for (std::size_t l = 0; l < machine.levels.size(); ++l)
        pipe_names_.push_back(l == 0 ? "" : fmt::format("{} to {}", machine.levels[l - 1].name, machine.levels[l].name));
}

/// Pipes in parallel take a little longer than the busiest of them. Two that are equally busy take longer by the
/// machine's factor.
double Simulator::beside(std::initializer_list<double> clocks) const { return together(clocks, exponent_); }

double Simulator::together(std::initializer_list<double> clocks, double exponent) {
    const double longest = std::max(clocks);
    if (!(longest > 0)) return 0;
    // Most pipes are idle, or the busiest: no power is computed for 0 and 1.
    const auto power = [](double base, double e) { return base == 0 || base == 1 ? base : std::pow(base, e); };
    double sum = 0;
    for (const double c : clocks) sum += power(std::max(0.0, c) / longest, exponent);
    return longest * power(sum, 1 / exponent);
}

/// Clocks in which so many bytes are read from the core's memory, or written to it.
double Simulator::clocks_of_shared(const ScheduledKernel& k, double num_bytes) const {
    return num_bytes / static_cast<double>(k.lanes * k.value_bytes()) * load_clocks_;
}

Simulator::Pipes Simulator::compute_clocks(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                           const std::vector<std::int64_t>& tile) const {
    const auto& compute = std::get<Compute>(*step.statement);
    const Atom& atom = k.atom(step);
    if (atom.kind != AtomKind::block) return fragment_clocks(k, step, work, tile);
    const auto lanes = static_cast<double>(k.lanes);
    const AxisId v = atom.vector_axis;
    Block block{.atom = atom, .tile = tile, .reads = step.reads};
    if (v >= 0) block.panels = ceil_of(block.size(v), lanes * atom.vectors);
    if (atom.row_axis >= 0) block.row_blocks = ceil_of(block.size(atom.row_axis), atom.rows);
    for (const AxisId axis : compute.reduce_axes) block.steps *= axis == v ? block.panels : block.count(axis);

    Pipes pipes;
    const auto add = [&](OpKind kind, double times) {
        const double more = k.in_blocks() ? instruction_clocks(kind) : 0;
        const double clocks = times * (clocks_a_vector_[at(static_cast<int>(kind))] + more);
        pipes.by_kind[at(static_cast<int>(kind))] += clocks;
        pipes.arithmetic += clocks;
    };
    const Unary* const near = counts(work, OpKind::erf) ? near_error_function(k, step) : nullptr;
    const bool is_near_erfc = near && near->op == UnaryOp::erfc;
    const int near_specials = is_near_erfc ? near_erfc_specials : near_erf_specials,
              near_instructions = is_near_erfc ? near_erfc_instructions : near_erf_instructions;
    if (counts(work, OpKind::exp))
        for (const Unary* u : nonpositive_exponentials(k, step)) {
            // In place of what is counted below for any exponential. A product that is rounded before the difference is
            // an operation of its own.
            const double product = as<Read>(as<Binary>(u->a)->a) ? 0
                                                                 : clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
            const double clocks = block.points(free_axes(u->a)) *
                                  (product + nonpositive_clocks_ - clocks_a_vector_[at(static_cast<int>(OpKind::exp))]);
            pipes.by_kind[at(static_cast<int>(OpKind::exp))] += clocks;
            pipes.arithmetic += clocks;
        }
    for (const OpCount& op : work.ops) {
        const double times = static_cast<double>(op.count) * block.points(op.axes);
        const bool is_near = near && op.kind == OpKind::erf;
        add(is_near ? OpKind::exp : op.kind, is_near ? times * near_specials : times);
        if (is_near) add(OpKind::simple, times * near_instructions);
    }
    if (const auto common = common_divisor(k, step)) {
        // A division becomes two products. Each divisor takes a division, a product and the choice of a scale.
        const double quotients = block.points(free_axes(compute.body)),
                     divisors = block.points(free_axes(common->divisor));
        add(OpKind::div, divisors - quotients), add(OpKind::simple, 2 * quotients + 4 * divisors);
    }
    const double targets = block.points(work.target_axes);
    // A prefetch takes as long as a load. There is one for each line, or for each block that is shorter than a line.
    for (const Prefetch* p : k.prefetches_in(step)) {
        if (p->fetched == Fetched::blocks) {
            pipes.load += load_clocks_ * targets / atom.vectors *
                          std::ceil(block.steps * static_cast<double>(k.value_bytes()) / machine_.line_bytes.value);
            continue;
        }
        const double block_bytes = lanes * atom.vectors * static_cast<double>(k.value_bytes());
        pipes.load += load_clocks_ * block.points(axes_of(k.variable(p->variable).dims)) / atom.vectors *
                      std::ceil(block_bytes / machine_.line_bytes.value);
    }
    if (!atom.follows) pipes.waits = machine_.call_clocks.value;
    pipes.store = targets * store_clocks_;
    if (work.carries) pipes.load += targets * load_clocks_;

    // Loads of one step of the register block: a vector for each of its vectors, one value for all lanes, or lane by
    // lane.
    const auto load_clocks = [&](const Read& r, double times) {
        const LaneStep along = v < 0 ? LaneStep::same : lane_step(k, r, v);
        if (along == LaneStep::same) return times * broadcast_clocks_;
        return times * load_clocks_ * (along == LaneStep::far ? lanes : 1);
    };
    if (compute.reduce_axes.empty()) {
        for (const Read* r : block.reads) pipes.load += load_clocks(*r, block.points(axes_of(r->indices)));
    } else {
        // Accumulators of a register block. A block across the lanes has its vectors side by side in the reduction.
        const double accumulators = atom.rows * atom.vectors;
        const double blocks = targets / (atom.rows * (atom.across || v < 0 ? 1.0 : atom.vectors));
        double step_loads = 0;
        for (const Read* r : block.reads) {
            if (none_of(compute.reduce_axes, [&](AxisId a) { return depends_on(r->indices, a); }))
                continue;  // loaded once for a register block
            const double rows = depends_on(r->indices, atom.row_axis) ? atom.rows : 1;
            const double vectors = depends_on(r->indices, v) ? atom.vectors : 1;
            step_loads += load_clocks(*r, rows * vectors);
        }
        // A fused reduction reads what is in registers.
        if (!atom.follows) pipes.load += blocks * block.steps * step_loads;
        // Too few accumulators do not hide the latency of multiply-adds.
        const double wait = std::max(0.0, machine_.fma_latency_clocks.value - accumulators * clocks_a_vector_[0]);
        if (!atom.follows) pipes.waits += blocks * (machine_.loop_exit_clocks.value + block.steps * wait);
        if (atom.across) pipes.overhead += targets * machine_.horizontal_clocks.value;
        // Partial results of warps are combined like lanes, once all of them are there.
        if (atom.shared)
            pipes.overhead += targets * machine_.horizontal_clocks.value, pipes.waits += machine_.call_clocks.value;
    }
    std::tie(pipes.cache, pipes.target) = cache_clocks(k, step, block);
    if (k.on_tensor_cores()) {
        // Warps take register blocks round-robin, so that some idle in the last round. Warps that share a reduction
        // take the vectors of a block in the same way. Without tensor cores, other resident CTAs use that time.
        const double blocks = atom.shared
                                  ? block.panels
                                  : std::max(1.0, targets / (atom.rows * (atom.across || v < 0 ? 1.0 : atom.vectors)));
        const auto warps = static_cast<double>(k.schedule.warps.value);
        const double idle = ceil_of(blocks, warps) * warps / blocks;
        for (double* pipe : {&pipes.arithmetic, &pipes.load, &pipes.store}) *pipe *= idle;
    }
    return pipes;
}

/// Clocks of the pipe from the cache behind L1, for what does not stay in L1. An operand crosses it once. It does so
/// once for each block of rows where even the part that one panel needs does not fit in L1. What is held for one panel
/// at a time stays. The second result is for targets that are added to.
std::pair<double, double> Simulator::cache_clocks(const ScheduledKernel& k, const Step& step, const Block& block) const {
    if (machine_.levels.size() <= core_level_ + 1) return {0, 0};
    const auto& compute = std::get<Compute>(*step.statement);
    const Atom& atom = block.atom;
    const AxisId v = atom.vector_axis;
    const double l1 = bytes_a_core(machine_, machine_.levels.size() - 1), value = static_cast<double>(k.value_bytes());
    const double panel = static_cast<double>(k.panel());
    const auto footprint = [&](VariableId id, bool one_panel) {
        double bytes = value;
        for (const Index& dim : k.variable(id).dims) {
            const double n = span_of(dim, block.tile);
            bytes *= one_panel && dim.depends_on(v) ? std::min(n, panel) : n;
        }
        return bytes;
    };
    std::vector<std::pair<VariableId, bool>> operands;  // whether a read depends on the rows
    operands.reserve(block.reads.size());
    for (const Read* r : block.reads) {
        const auto known = find_if(operands, [&](const auto& operand) { return operand.first == r->variable(); });
        const bool rows = depends_on(r->indices, atom.row_axis);
        if (known == operands.end())
            operands.emplace_back(r->variable(), rows);
        else
            known->second |= rows;
    }
    sort(operands);
    const bool in_run = atom.run >= 0;
    double touched = footprint(compute.variable, in_run), panel_bytes = 0;
    for (const auto& [id, rows] : operands) {
        touched += footprint(id, in_run);
        // The part that all blocks of rows share, and the part that passes through beside it.
        panel_bytes += rows ? footprint(id, true) / block.row_blocks : footprint(id, true);
    }
    const bool fits = touched <= l1;
    // In fused statements each panel's own part is new to L1. What it shares with other panels stays, if all of it
    // fits.
    const auto passes_of = [&](VariableId id, bool rows) {
        if (k.is_panel(id)) return fits ? 0.0 : 1.0;
        if (!carries(k.variable(id), v) && v >= 0 && !atom.across) return fits ? 0.0 : block.panels;
        if (compute.reduce && !atom.across && panel_bytes > l1 && !rows) return block.row_blocks;
        return fits && !in_run ? 0.0 : 1.0;
    };
    // The target comes in and goes out, unless it stays. Sums are read, added to and written at the end of a register
    // block, when its vectors have nothing else to do. C of 2048³ in tiles of 128 × 288 shows it on a Zen 3 core. Each
    // further K block takes 9,500 clocks longer than what it computes, and C crosses the pipe twice in 10,000.
    const bool is_new = in_run && !k.is_panel(compute.variable) && carries(k.variable(compute.variable), v);
    const double of_target = is_new || !fits ? 2 * footprint(compute.variable, false) : 0;
    const bool is_added_to = compute.reduce && compute.carry && !atom.across;
    double traffic = is_added_to ? 0 : of_target;
    for (const auto& [id, rows] : operands)
        if (id != compute.variable) traffic += footprint(id, k.is_panel(id)) * passes_of(id, rows);
    return {clocks_of_nearest(traffic), is_added_to ? clocks_of_nearest(of_target) : 0};
}

bool Simulator::carried_by_all_memory(AxisId axis) const {
    return std::all_of(live_.variables.begin(), live_.variables.end(), [&](const CoreVariable& v) {
        return (!v.loaded && !v.stored) || contains(axes_of(v.dims), axis);
    });
}

/// Wave quantization factor where output tiles run different numbers of K blocks. It is how much longer they take than
/// with even shares. `core` has clocks by step, over all tiles. `starts` has the clocks in which tiles begin.
double Simulator::wave_quantization_of_uneven(const ScheduledKernel& k, const TileCounter& counter,
                                              const std::vector<double>& core, double starts, double workers) const {
    double outside = starts;
    std::vector<double> a_k_block(live_.loops.size());  // clocks of one K block, by loop
    for (const StepId i : k.steps.ids()) {
        const auto* load = std::get_if<Load>(k.steps[i].statement);
        const auto* store = std::get_if<Store>(k.steps[i].statement);
        const int loop = k.steps[i].atom >= 0 ? work_[k.steps[i].atom].loop
                         : load || store ? transferred(load ? load->variable : store->variable, load != nullptr).loop
                                         : -1;
        const int stream = counter.stream_of(loop);
        (stream < 0 ? outside : a_k_block[at(stream)]) += core[i];
    }
    for (std::size_t l = 0; l < a_k_block.size(); ++l)
        if (a_k_block[l] > 0) a_k_block[l] /= static_cast<double>(counter.chunks_run(static_cast<int>(l)));
    std::map<double, double, std::greater<>> counts;  // of output tiles, by their time
    counter.for_each_group([&](const std::vector<std::int64_t>& chunks, std::int64_t count) {
        double time = outside / static_cast<double>(counter.groups());
        for (std::size_t l = 0; l < chunks.size(); ++l) time += static_cast<double>(chunks[l]) * a_k_block[l];
        counts[time] += static_cast<double>(count);
    });
    GroupTimes times{{}, k.num_sections()};
    for (const auto& [time, count] : counts)
        times.of_section.push_back({time, std::max(1.0, std::round(count / static_cast<double>(times.sections)))});
    const double taken = k.has_block_a_group() || k.is_dynamic() ? time_as_workers_end(times, workers)
                                                                 : time_in_rounds(times, workers);
    return taken * workers / times.total();
}

/// Threads without an output tile take no part: on a CPU they use no share of the caches or of memory. The figures of a
/// GPU are for all of its SMs at work, so there the SMs with tiles stand for all.
std::int64_t Simulator::threads_of_model(const ScheduledKernel& k, std::int64_t threads, std::int64_t groups) const {
    if (threads < groups) return threads;
    return k.in_blocks() ? std::max(threads, machine_.num_cores()) : std::max<std::int64_t>(1, groups);
}

Simulation Simulator::run(const ScheduledKernel& k, std::int64_t most_threads, std::int64_t walk_limit) const {
    const TileCounter counter(derived_.diagram, live_, extents_, k.sizes, walk_limit, nullptr, known_);
    Simulation out;
    out.groups = counter.groups();
    const std::int64_t threads = threads_of_model(k, most_threads, out.groups);

    // ---- the cores
    Pipes sum;
    std::vector<double> core(k.steps.size());  // clocks, by step
    // the same for tiles that do not stay in L1: nothing overlaps these clocks
    std::vector<double> spilled(k.steps.size());
    double on_tensor_cores = 0, waiting_for_it = 0;  // clocks of the tensor cores, and of waits for them
    // Clocks in which tensor cores read shared memory (`shared`), and in which copies fill and empty it (`filled`).
    // Neither delays the other. A product of 512×4096×4096 in tiles of 256×64 takes 26.5 µs on one H200. Added up, both
    // would take 29.
    double shared = 0, filled = 0;
    StepSeconds iterations_of_steps{std::vector<double>(k.steps.size()), std::vector<double>(k.steps.size())};
    double copies = 0;
    const bool beside_others = k.in_blocks() && !k.on_tensor_cores();
    BlockWork of_blocks;
    // by scope: the fraction of the CTA's K blocks that a warpgroup runs
    std::vector<double> own_share(k.scopes.size(), 1);
    for (const ScheduledLoop& l : k.loops) own_share[at(l.scope)] = 1 - fraction_of_skipped_blocks(k, l);
    for (const StepId i : k.steps.ids()) {
        const Step& step = k.steps[i];
        const auto* load = std::get_if<Load>(step.statement);
        const auto* store = std::get_if<Store>(step.statement);
        if (step.atom >= 0) {
            const StatementWork& work = work_[at(step.atom)];
            counter.for_each_tile(
                work_axes_[at(step.atom)], work.loop, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
                    const Pipes pipes = compute_clocks(k, step, work, tile);
                    const double times = static_cast<double>(count) * own_share[at(step.scope)];
                    const double alone = beside_others ? 0 : pipes.waits;
                    core[i] += times * (beside({pipes.arithmetic, pipes.load, pipes.store, pipes.cache}) +
                                        pipes.target + pipes.overhead + alone);
                    if (k.atom(step).kind == AtomKind::matrix)
                        on_tensor_cores += times * pipes.unit, waiting_for_it += times * pipes.overhead,
                            shared += times * pipes.shared;
                    iterations_of_steps.latency[i] += times * latency_of_warpgroups(k, step, pipes.overhead);
                    iterations_of_steps.core[i] -= k.atom(step).kind == AtomKind::matrix ? times * pipes.overhead : 0;
                    sum.load += times * pipes.load, sum.store += times * pipes.store;
                    sum.cache += times * (pipes.cache + pipes.target), sum.overhead += times * (pipes.overhead + alone);
                    if (beside_others)
                        of_blocks.chain_clocks += times * (chain_of_compute(k, step, work, tile) +
                                                           (step.synchronizes ? machine_.call_clocks.value : 0));
                    for (std::size_t o = 0; o < num_op_kinds; ++o) sum.by_kind[o] += times * pipes.by_kind[o];
                });
        } else if ((load && !step.stays) || store) {
            const VariableId id = load ? load->variable : store->variable;
            counter.for_each_tile(
                axes_of(k.variable(id).dims), transferred(id, load != nullptr).loop,
                [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
                    const auto times = static_cast<double>(count);
                    core[i] += times * copy_clocks(k, id, tile, load != nullptr);
                    // In a kernel with loops, a tile outside of them leaves L1 before the next output tile, whatever
                    // its size. So no size saves anything there.
                    if (load && (step.scope > 0 || k.loops.empty()))
                        spilled[i] += times * clocks_of_spilled_tile(k, id, tile);
                    if (beside_others)
                        of_blocks.chain_clocks += times * (chain_of_copy(k, id, tile, load != nullptr) +
                                                           (step.synchronizes ? machine_.call_clocks.value : 0));
                });
            copies += core[i], sum.cache += spilled[i];
        }
    }
    leave_longest_chains(k, iterations_of_steps.latency);
    // Clocks for which the warps of a CTA wait for their own results.
    const double latency = std::accumulate(iterations_of_steps.latency.begin(), iterations_of_steps.latency.end(), 0.0);
    const double clock = machine_.clock_hz.value, groups = static_cast<double>(out.groups);
    // A producer that copies for the next tile leaves no wait between tiles. A new CTA has to start, and waits for its
    // first copy.
    const bool goes_on = k.producer_role() && !k.has_block_a_group();
    const double begin = k.producer_role() ? k.unit.copies.bulk_clocks : 0;
    const double starts = beside_others || goes_on ? 0 : groups * (machine_.group_s.value * clock + begin);
    sum.overhead += starts;
    const auto sharers = static_cast<double>(std::max<std::int64_t>(1, threads / k.cluster_blocks()) * k.cluster_blocks());
    // A CPU's threads share its cores where there are more threads than cores.
    const double workers = k.in_blocks() ? sharers : std::min(sharers, machine_.cores.value);
    const auto cut = chosen_stream_k(k);
    out.waves = k.has_uneven_groups() ? wave_quantization_of_uneven(k, counter, core, starts, sharers)
                : cut ? static_cast<double>(cut->most_k_blocks()) * sharers / (groups * static_cast<double>(cut->chunks))
                      : std::ceil(groups / sharers) * sharers / groups;
    // A tile that is split has one part for each of its CTAs.
    const double begun = groups + (cut ? static_cast<double>(cut->num_split_tiles()) : 0);
    const double share = machine_.sustained_share.value * (threads > 1 ? machine_.together_share.value : 1);
    // Where CTAs share an SM, those of the last wave have more of it to themselves.
    const double of_iterations = beside_others ? 1 : out.waves;
    const auto seconds = [&](double clocks) { return clocks * of_iterations / (workers * share * clock); };

    const double special = sum.special();
    if (on_tensor_cores > 0) out.busy.push_back({name_of_tensor_core(k), seconds(on_tensor_cores)});
    for (std::size_t i = 0; i < num_op_kinds; ++i)
        if (sum.by_kind[i] > 0)
            out.busy.push_back({std::string(name(static_cast<OpKind>(i))), seconds(sum.by_kind[i])});
    out.busy.push_back({"loads", seconds(sum.load)});
    out.busy.push_back({"stores", seconds(sum.store)});
    out.busy.push_back({"copies", seconds(copies)});
    out.busy.push_back({"calls and loops", seconds(sum.overhead)});
    if (machine_.levels.size() > core_level_ + 1) out.busy.push_back({pipe_names_.back(), seconds(sum.cache)});

    // ---- the levels above: a level that holds what all cores work on at the same time is filled once, a smaller one
    // again and again
    const std::vector<Moved> moved = transfers(k, counter, workers, out.transfers);
    double bytes_moved = 0;
    for (const Moved& m : moved) bytes_moved += m.bytes;
    // On a CPU: bytes that pass through a cache of so many cores from one output tile that reads a tile to the next
    // that does.
    const auto passing = [&](const Moved& of, double cores) {
        const double between = std::max(cores, groups_between_uses(k.group_order, k.variable(of.variable)));
        double bytes = 0;
        for (const Moved& m : moved)
            bytes += m.bytes / groups * between * different_tiles(k.group_order, k.variable(m.variable), between);
        return bytes;
    };
    std::vector<double> waited(k.steps.size());  // seconds, by step
    std::vector<double> into(core_level_ + 1);   // seconds, by level
    std::vector<double> stood_still(k.steps.size());
    std::vector<Traffic> traffic;  // by level
    for (const std::string& path : pipe_names_) traffic.push_back({path});
    // seconds, by level, of what comes in ahead, whatever the core computes meanwhile
    std::vector<double> ahead_into(core_level_ + 1);
    const bool flows = flows_through_first_cache(k, moved);
    double flowing = 0;  // of what comes in and goes out, whatever the core computes meanwhile
    // Seconds, by step, of stores that are not pipelined across tiles. They overlap only what their own statement
    // computes.
    std::vector<double> stored(k.steps.size());
    double arrivals = 0,
           ahead_arrivals = 0;  // seconds in which data arrives in the cores, of which several may share an answer
    double leaving = 0;         // seconds of what goes out while the core computes
    // seconds of a core's first K block to come in, and the number of its K blocks
    double first_k_block = 0, chunks = 1;
    double tiles = 0;      // K blocks of all output tiles
    double under_way = 0;  // seconds, of the operand with the fewest outstanding copies
    double of_stages = 0;  // seconds, of the operand whose stages take longest to come round
    for (std::size_t i = 0; i < k.steps.size(); ++i)
        iterations_of_steps.core[i] = seconds(iterations_of_steps.core[i] + core[i]),
        iterations_of_steps.latency[i] = seconds(iterations_of_steps.latency[i]);
    for (const Moved& m : moved) {
        double longest = 0, later = machine_.levels[0].latency_s.value;  // latency, for what was moved before
        for (std::size_t l = 1; l <= core_level_; ++l) {
            const Level& level = machine_.levels[l];
            const double sharing = std::min(machine_.cores.value / level.instances.value, workers);
            const bool keeps = l < core_level_ && bytes_moved / groups * sharing <= level.capacity_bytes.value;
            const bool keeps_for_others = keeps && !k.in_blocks() && passing(m, sharing) <= level.capacity_bytes.value;
            // A CTA may count on L2 for what it read itself. For what others read it may only count on tiles that run
            // together.
            const double from_above = l < core_level_ ? std::max(m.unique, (keeps ? m.by_groups : m.bytes) * m.together)
                                      : m.stays       ? std::min(m.bytes, m.unique * workers)
                                                      : m.bytes;
            // All CTAs of a cluster get what one of them asks for.
            const double crossing = (keeps_for_others ? m.unique : from_above) * (l == core_level_ ? m.of_a_cluster : 1);
            // CTAs with fewer tiles wait for the others, also at the pipe that each SM has for itself.
            const double uneven = k.in_blocks() && !beside_others && l == core_level_ ? out.waves : 1;
            const double time = crossing * seconds_a_byte(l, workers, m) * uneven,
                         arrival = l == core_level_ && !m.is_store ? crossing * seconds_of_arrival(workers) * uneven : 0;
            arrivals += arrival;
            if (m.is_ahead) ahead_arrivals += arrival;
            (m.is_store ? traffic[l].stored_bytes : traffic[l].loaded_bytes) += crossing;
            into[l] += time;
            if (keeps) later = level.latency_s.value;
            const bool is_under_way = m.is_ahead || (m.is_fetched && l < core_level_);
            if (m.is_ahead || !is_under_way) longest = beside({longest, std::max(time, arrival)});
            if (is_under_way && !m.is_store) ahead_into[l] += time;
        }
        if (flows && (m.is_store || groups_ahead(k, m.variable) > 0))
            flowing += longest;
        else if (!m.is_ahead)
            waited[m.step] += longest;
        if (flows && m.is_store && k.steps[m.step].deferred < 0) stored[m.step] += longest;
        if (m.is_ahead && m.is_store) leaving += longest;
        if (m.is_ahead) filled += clocks_of_shared(k, m.bytes);
        if (m.is_ahead && !m.is_store && k.producer_role()) {
            const CopyAtoms& bulk = k.unit.copies;
            const double of_tile = (m.unique * bulk.bulk_clocks + (m.bytes - m.unique) * bulk.cached_bulk_clocks) / m.bytes,
                         answer = seconds(of_tile * m.tiles);
            if (k.steps[m.step].scope > 0)
                out.copies.push_back({m.variable, of_tile, longest / blocks_a_core(machine_) * clock * workers / m.tiles});
            of_stages = std::max(
                of_stages, seconds_of_stages(k, m, answer, longest / blocks_a_core(machine_), iterations_of_steps));
            // Where a loop takes tiles as fast as they come, all SMs copy, and each copy takes longer. Copies are
            // outstanding for the stages that no iteration holds. An iteration holds its own stage, and also the
            // previous one where products are waited for an iteration later. A stage that is released early counts for
            // a part of the iteration.
            constexpr double least_under_way = 0.5;
            const ScopeId scope = k.steps[m.step].scope;
            const int stages = k.place(m.variable).stages;
            if (only_adds_products(k, scope))
                under_way = std::max(
                    under_way, seconds(bulk.loaded_bulk_clocks * m.tiles) / blocks_a_core(machine_) /
                                   std::max(least_under_way,
                                            static_cast<double>(stages - (outlasts_iterations(k, scope, stages) ? 2 : 1))));
        }
        if (m.is_ahead && !m.is_store)
            first_k_block += longest / std::max(1.0, m.tiles / workers), chunks = std::max(chunks, m.tiles / workers),
                                                                         tiles = std::max(tiles, m.tiles);
        if (m.asks > 0) stood_still[m.step] += seconds(m.asks * k.unit.copies.loaded_bulk_clocks);
        if (m.waits > 0)
            stood_still[m.step] += m.waits / m.bytes / workers *
                                   (m.unique * machine_.levels[0].latency_s.value + (m.bytes - m.unique) * later);
    }
    into[core_level_] = std::max(into[core_level_], arrivals);
    ahead_into[core_level_] = std::max(ahead_into[core_level_], ahead_arrivals);
    for (std::size_t l = 1; l <= core_level_; ++l) {
        out.busy.push_back({pipe_names_[l], into[l]});
        out.traffic.push_back(traffic[l]);
    }

    // Statements run one after the other. What a core computes hides only the transfers of the same statement. Among
    // several panels only the first one's work does, as the others find the data in the cache.
    double total = seconds(starts), outside = 0;  // `outside`: the part of `total` that is outside of loops
    double storing = 0;                           // extra seconds of statements that wait for their stores
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
        const double of_step = beside({first, waited[i]}) + here - first + alone + stood_still[i];
        total += of_step;
        storing += beside({first, waited[i] + stored[i]}) - beside({first, waited[i]});
        if (step.scope == 0) outside += of_step;
    }
    double ahead = seconds(std::max(shared, filled));
    for (const double time : ahead_into) ahead = beside({ahead, time});
    const double turns = total - outside;
    if (k.producer_role())
        total = outside + seconds(starts) + (latency > 0 ? begun / workers * clocks_between_groups(k) / clock : 0) +
                std::max({ahead, leaving, under_way,
                          seconds_of_warpgroups(k, {.unit = seconds(on_tensor_cores),
                                                    .special = seconds(special),
                                                    .core = turns - seconds(starts) - seconds(waiting_for_it),
                                                    .latency = seconds(latency),
                                                    .stages = of_stages,
                                                    .alone = begun / std::max(begun, tiles),
                                                    .own = *std::min_element(own_share.begin(), own_share.end())})});
    else
        total = std::max(beside({total, ahead, leaving, flowing}), total + storing);
    // What is prefetched, waited for and stored shares one pipe, however well each part overlaps computation.
    if (!k.in_blocks())
        for (std::size_t l = 1; l <= core_level_; ++l) total = std::max(total, into[l]);
    // Before the first K block there is nothing to compute, and behind the last one nothing to copy. With producer
    // warps, which copy for the next tile meanwhile, this time is lost once. Else it is lost in each tile, unless other
    // resident CTAs have work.
    if (ahead > 0)
        total += (k.producer_role() ? 1 : std::ceil(groups / workers) / blocks_a_core(machine_)) *
                 (std::min(first_k_block, turns / chunks) + k.unit.copies.bulk_clocks / clock);
    if (beside_others) {
        for (const double clocks : core) of_blocks.core_clocks += clocks;
        out.core_seconds = seconds_of_blocks(groups, workers, of_blocks);
        for (const double of_step : waited) of_blocks.memory_seconds += of_step;
        total = seconds_of_blocks(groups, workers, of_blocks);
    }
    if (cut) {
        const auto values = static_cast<double>(stream_k_values(k, *cut)), bytes = 4 * values;
        // In the rounds that are split, transfers from global memory overlap these rounds only, not the whole kernel.
        const double from_memory = bytes_out_of_step(k, *cut, moved),
                     of_rounds = total * static_cast<double>(cut->groups) / groups;
        const double parts = seconds_of_parts(k, *cut, workers) +
                             beside({of_rounds, from_memory / machine_.levels[1].bandwidth_bytes_per_s.value}) - of_rounds;
        out.traffic.front().loaded_bytes += from_memory;
        out.transfers += 2 * values;
        out.traffic.back().loaded_bytes += bytes, out.traffic.back().stored_bytes += bytes;
        out.busy.push_back({"parts of groups", parts});
        total += parts;
    }
    out.launch_seconds = threads > 1 || k.in_blocks() ? machine_.launch_s.value : machine_.group_s.value;
    out.busy.push_back({"launch", out.launch_seconds});
    out.seconds = total + out.launch_seconds;
    std::stable_sort(out.busy.begin(), out.busy.end(), [](const Busy& a, const Busy& b) { return a.seconds > b.seconds; });
    return out;
}

}  // namespace napkin
