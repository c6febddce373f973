#include "schedule/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "machine/block_machine.hpp"
#include "machine/register_tile.hpp"
#include "schedule/error_function.hpp"
#include "schedule/fragments.hpp"
#include "schedule/group_order.hpp"
#include "schedule/lane_product.hpp"
#include "schedule/maxima.hpp"
#include "schedule/quotients.hpp"
#include "schedule/simulate_parts.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Instructions for a quotient and a remainder of whole numbers, counted in what NVRTC 13 makes of them.
constexpr double instructions_of_coordinate = 20;
/// Instructions of a warp for the coordinates of a block of vectors, the addresses there, and the loop's end. Counted
/// in the same way.
constexpr double address_of_block = 12;
/// Instructions for the address of a run of four dimensions, and to see that one access reaches it. Counted in the same
/// way.
constexpr double address_of_run = 12;

}  // namespace

Simulator::Simulator(const Derived& derived, const Kernel& kernel, const TileKernel& tiles, const Extents& extents,
                     const Machine& machine, KnownCounts* known)
    : derived_(derived),
      kernel_(kernel),
      extents_(extents),
      machine_(machine),
      known_(known),
      live_(with_even_lengths(liveness(tiles), derived.diagram, extents)) {
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

/// Each lane has so many rows of its own, for which it finds the coordinates. All axes but one take a division.
void Simulator::share_among_lanes(double targets, double rows, const StatementWork& work, Pipes& pipes) const {
    const double lanes_used = ceil_of(targets / rows, static_cast<double>(lanes_)) * rows / targets,
                 divisions = std::max(0.0, static_cast<double>(work.target_axes.size()) - 1);
    pipes.arithmetic += targets / rows * divisions * instructions_of_coordinate *
                        clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
    for (double* pipe : {&pipes.arithmetic, &pipes.load, &pipes.store, &pipes.waits}) *pipe *= lanes_used;
    for (double& clocks : pipes.by_kind) clocks *= lanes_used;
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
    block.steps /= atom.terms;

    Pipes pipes;
    const auto of_terms = clocks_of_term(k, step);
    const auto add = [&](OpKind kind, double times) {
        const double more = k.in_blocks() ? instruction_clocks(kind) : 0;
        const double clocks = times * (of_terms && kind == OpKind::fma
                                           ? *of_terms
                                           : clocks_a_vector_[at(static_cast<int>(kind))] + more);
        pipes.by_kind[at(static_cast<int>(kind))] += clocks;
        pipes.arithmetic += clocks;
    };
    const Unary* const near = counts(work, OpKind::erf) ? near_error_function(k, step) : nullptr;
    const bool is_near_erfc = near && near->op == UnaryOp::erfc;
    const int near_instructions = is_near_erfc ? near_erfc_instructions : near_erf_instructions;
    if (counts(work, OpKind::exp))
        for (const Unary* u : nonpositive_exponentials(k, step)) {
            // In place of what is counted below for any exponential. A product that is rounded before the difference is
            // an operation of its own.
            const auto* difference = as<Binary>(u->a);
            const double products = is_rounded_before(difference->a) + is_rounded_before(difference->b),
                         clocks = block.points(free_axes(u->a)) *
                                  (products * clocks_a_vector_[at(static_cast<int>(OpKind::simple))] +
                                   nonpositive_clocks_ - clocks_a_vector_[at(static_cast<int>(OpKind::exp))]);
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
    pipes.load += prefetch_clocks(k, step, block, targets);
    if (!atom.follows) pipes.waits = machine_.call_clocks.value;
    if (!k.is_in_lanes(compute.variable) && !k.is_in_accumulators(compute.variable))
        pipes.store = targets * store_clocks_, pipes.load += work.carries ? targets * load_clocks_ : 0;

    // Loads of one step of the register block: a vector for each of its vectors, one value for all lanes, or lane by
    // lane.
    const auto load_clocks = [&](const Read& r, double times) {
        if (k.is_in_lanes(r.variable()) || k.is_in_accumulators(r.variable())) return 0.0;
        const LaneStep along = v < 0 ? LaneStep::same : lane_step(k, r, v);
        if (along == LaneStep::same) return times * broadcast_clocks_ / values_in_a_load(k, atom, r, tile);
        if (along == LaneStep::near) return times * load_clocks_;
        // A CPU loads lane by lane. Each lane of a warp finds its own place, and lanes meet at the banks.
        return k.in_blocks() ? times * far_clocks(k, r, v) : times * load_clocks_ * lanes;
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
    if (k.in_blocks() && !k.on_tensor_cores() && v >= 0 && !compute.reduce && !k.is_in_lanes(compute.variable))
        add_addresses_of_blocks(step, atom, targets, pipes);
    if (k.layout(compute.variable).in_runs) add_addresses_of_runs(k, step, block, targets, pipes);
    if (k.in_blocks() && v < 0) share_among_lanes(targets, atom.rows, work, pipes);
    if (k.on_tensor_cores())
        share_among_warps(k,
                          atom.shared ? block.panels
                          : v < 0     ? ceil_of(targets, lanes)
                                      : std::max(1.0, targets / (atom.rows * (atom.across ? 1.0 : atom.vectors))),
                          pipes);
    return pipes;
}

/// Warps find the place of each block of a map's vectors, and of what it reads there.
void Simulator::add_addresses_of_blocks(const Step& step, const Atom& atom, double targets, Pipes& pipes) const {
    double instructions = address_of_block / atom.vectors;
    for (const Read* r : step.reads) {
        // Lanes compute a place that is no sum of coordinates for themselves.
        if (any_of(r->indices, [](const Index& index) { return !index.affine(); })) instructions += address_of_block;
        for (const Index& index : r->indices) instructions += quotient_instructions * all_quotients_in(index.value());
    }
    pipes.arithmetic += targets * instructions * clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
}

/// Statements by runs find the addresses of what they access in memory, and convert it.
void Simulator::add_addresses_of_runs(const ScheduledKernel& k, const Step& step, const Block& block, double targets,
                                      Pipes& pipes) const {
    double instructions = targets / block.atom.rows * address_of_run + targets;
    for (const Read* r : step.reads) {
        if (!k.layout(r->variable()).in_runs) continue;
        double quotients = 0;
        for (const Index& index : r->indices) quotients += all_quotients_in(index.value());
        const double values = targets * block.steps, loads = loads_of_run(k, block.atom, *r);
        instructions += values + values / block.atom.rows * loads *
                                     (address_of_run / (loads > 1 ? 2 : 1) + quotient_instructions * quotients);
    }
    pipes.arithmetic += instructions * clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
}

/// Warps take register blocks round-robin, so that some idle in the last round. Warps that share a reduction take the
/// vectors of a block in the same way. Without tensor cores, other resident CTAs use that time.
void Simulator::share_among_warps(const ScheduledKernel& k, double blocks, Pipes& pipes) {
    const auto warps = static_cast<double>(k.schedule.warps.value);
    const double idle = ceil_of(blocks, warps) * warps / blocks;
    for (double* pipe : {&pipes.arithmetic, &pipes.load, &pipes.store}) *pipe *= idle;
}

/// Clocks of a warp's load whose lanes find their own places along the axis. Each bank has one word a clock for it.
double Simulator::far_clocks(const ScheduledKernel& k, const Read& r, AxisId axis) const {
    const Layout& layout = k.layout(r.variable());
    const auto banks = static_cast<std::int64_t>(machine_.line_bytes.value) / word_bytes;
    std::vector<std::int64_t> point(k.extents.size(), 0);
    std::map<std::int64_t, std::set<std::int64_t>> words;  // by bank
    for (std::int64_t lane = 0; lane < k.lanes; ++lane) {
        point[at(axis)] = lane;
        std::int64_t place = 0;
        for (std::size_t d = 0; d < r.indices.size() && d < layout.strides.size(); ++d)
            place += value_at(r.indices[d], point, [](const Read&) { return std::int64_t{0}; }) * layout.strides[d];
        const std::int64_t word = place * k.value_bytes() / word_bytes;
        words[((word % banks) + banks) % banks].insert(word);
    }
    std::size_t turns = 1;
    for (const auto& [bank, different] : words) turns = std::max(turns, different.size());
    double quotients = 0;
    for (const Index& index : r.indices)
        if (index.depends_on(axis)) quotients += all_quotients_in(index.value());
    return load_clocks_ * static_cast<double>(turns) +
           quotient_instructions * quotients * clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
}

/// Clocks for a term in all lanes where an instruction adds up several of each lane. None: the atom has no such.
std::optional<double> Simulator::clocks_of_term(const ScheduledKernel& k, const Step& step) const {
    const Atom& atom = k.atom(step);
    const auto product = atom.terms > 1 ? lane_product(k, step) : std::nullopt;
    if (!product) return std::nullopt;
    const double rate = per_clock(machine_, "dot", product->type);
    return rate > 0 ? static_cast<double>(lanes_) / rate : clocks_a_vector_[at(static_cast<int>(OpKind::fma))];
}

/// A prefetch takes as long as a load. There is one for each line, or for each block that is shorter than a line.
double Simulator::prefetch_clocks(const ScheduledKernel& k, const Step& step, const Block& block, double targets) const {
    const double vectors = block.atom.vectors, value_bytes = static_cast<double>(k.value_bytes());
    double clocks = 0;
    for (const Prefetch* p : k.prefetches_in(step)) {
        if (p->fetched == Fetched::blocks) {
            clocks += load_clocks_ * targets / vectors * std::ceil(block.steps * value_bytes / machine_.line_bytes.value);
            continue;
        }
        const double block_bytes = static_cast<double>(k.lanes) * vectors * value_bytes;
        clocks += load_clocks_ * block.points(axes_of(k.variable(p->variable).dims)) / vectors *
                  std::ceil(block_bytes / machine_.line_bytes.value);
    }
    return clocks;
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
        double bytes = value / k.layout(id).terms;
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
        // No copy has brought in what is read in place, and data say for each tile where that is.
        const bool comes = !k.in_blocks() && k.is_view(id) && !k.variable(id).gathers.empty();
        if (fits && comes) return 1.0;
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

}  // namespace napkin
