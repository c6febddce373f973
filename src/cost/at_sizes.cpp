#include "cost/at_sizes.hpp"

#include <fmt/format.h>

#include <cmath>

#include "support/ranges.hpp"
#include "tile/exact.hpp"
#include "tile/expand.hpp"

namespace napkin {
namespace {

/// Grouped axes: those whose groups repeat no work, and those that the options cut. A plan cuts an axis whose
/// groups repeat work if the whole axis does not fit, and a user may override it.
std::vector<AxisId> grouped_axes(const Kernel& kernel, const Extents& extents, const MachineCostOptions& options) {
    std::vector<AxisId> grouped;
    for (const AxisId axis : kernel.group_axes) {
        const auto size = options.group.find(axis);
        const bool is_cut = size != options.group.end() && size->second < extents[axis];
        if (is_cut || !contains(kernel.recompute_axes, axis)) grouped.push_back(axis);
    }
    return grouped;
}

/// The cost with each array's tile loaded once a group, however many traversals read it: what a cache that holds it
/// lets through.
KernelCost each_once(KernelCost cost) {
    cost.transfers = Size();
    std::vector<const ArrayTransfers*> kept;
    for (const ArrayTransfers& a : cost.arrays) {
        const bool again = any_of(kept, [&](const ArrayTransfers* b) {
            return b->array == a.array && b->pattern == a.pattern && b->stored == a.stored;
        });
        if (again) continue;
        kept.push_back(&a);
        cost.transfers += a.per_launch;
    }
    return cost;
}

/// Whether it is loaded in a loop over the stream.
bool is_in_loop(const KernelCost& cost, const ArrayTransfers& a) {
    const std::vector<Symbol> symbols = a.per_group.symbols();
    return !a.stored && any_of(cost.streamed, [&](AxisId axis) { return contains(symbols, axis_symbol(axis)); });
}

}  // namespace

CostAtSizes::CostAtSizes(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine,
                         const MachineCostOptions& options)
    : derived(derived),
      kernel(kernel),
      extents(extents),
      machine(machine),
      options(options),
      tiles(options.tiles ? *options.tiles : expand(derived, kernel)),
      grouped(grouped_axes(kernel, extents, options)),
      live(liveness(with_numbers(tiles, extents))),
      subs(live, extents, options.sub),
      statements(statement_work(derived.diagram, tiles)),
      columns(subs.in(core_columns(derived.diagram, tiles, grouped, machine))),
      cost(with_columns(subs.in(symbolic_cost(derived.diagram, tiles, grouped, Measure::bytes)))),
      sized(cost, extents),
      memory(holding(columns.memory), extents),
      accumulators(holding(columns.accumulators), extents),
      once(each_once(cost), extents),
      parts_together(together(), extents) {
    cores = machine.cores.value * static_cast<double>(options.levels.devices);
    symbols = symbols_of_sizes(cost, extents.size());
    values.resize(sized.num_sizes());
    append(values, extents);
    for (const UnitWork& w : unit_work(derived.diagram, tiles, cost.grouped, machine))
        work.push_back({pipe_index(pipe_of(machine, w)), w.rate, CompiledSize(subs.in(w.total), symbols), w.in_loop,
                        w.flops_each(), sustained_rate_of(machine, w.rate.unit),
                        pipe_of(machine, w) == "special" ? 1 + options.special_overhead : 1.0});
    find_splits();
}

void CostAtSizes::set_levels(const std::vector<ModelLevel>& levels, const ModelLevel& core, const ModelLevel& outermost) {
    core_weight = core.sustained_seconds_per_byte;
    memory_weight = outermost.sustained_seconds_per_byte;
    merge_s = machine.launch_s.value + machine.group_s.value + latency_s(levels);
}

double CostAtSizes::value_at(const CompiledSize& size, const SizedCost::Sizes& sizes) const {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto extent = static_cast<double>(sized.extent(i)), tile = static_cast<double>(sizes[i]);
        values[i] = extent / std::ceil(extent / tile);
    }
    return size(values);
}

KernelCost CostAtSizes::with_columns(KernelCost plain) const {
    plain.memory = columns.memory;
    for (MemoryColumn column : columns.accumulators) {
        column.size *= Size(Rational(static_cast<std::int64_t>(core_bytes()),
                                     static_cast<std::int64_t>(accumulator_capacity_bytes(machine))));
        plain.memory.push_back(std::move(column));
    }
    return plain;
}

KernelCost CostAtSizes::holding(const std::vector<MemoryColumn>& held) const {
    KernelCost alone = cost;
    alone.memory = held;
    return alone;
}

KernelCost CostAtSizes::together() const {
    if (cost.part < 0) return cost;
    TileKernel whole = tiles;
    whole.parts = {};
    std::vector<AxisId> without = grouped;
    std::erase(without, cost.part);
    KernelCost out = subs.in(symbolic_cost(derived.diagram, whole, without, Measure::bytes));
    // The part keeps its place among the sizes.
    out.grouped = grouped;
    return out;
}

void CostAtSizes::find_splits() {
    std::vector<const Loop*> loops;
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) loops.push_back(loop);
    // A plan has its parts as kernels of their own.
    if (options.planned || options.whole || loops.size() != 1 || kernel.folds.empty()) return;
    can_split = true;
    for (const auto& [state, init] : loops[0]->init) {
        double tile = bytes(derived.diagram.array(state).type);
        for (const AxisId axis : derived.diagram.array(state).axes) tile *= static_cast<double>(extents[axis]);
        state_bytes += tile;
    }
}

double CostAtSizes::latency_s(const std::vector<ModelLevel>& levels) const {
    double seconds = machine.levels[0].latency_s.value;
    for (const ModelLevel& level : levels) seconds += level.latency_s;
    return seconds;
}

double CostAtSizes::most_splits(const SizedCost::Sizes& sizes) const {
    const double groups = sized.num_groups(sizes);
    if (!can_split || groups >= cores) return 1;
    const std::size_t stream = cost.grouped.size();
    const double chunks = std::ceil(static_cast<double>(sized.extent(stream)) / static_cast<double>(sizes[stream]));
    return std::max(1.0, std::min(std::floor(cores / groups), chunks));
}

CostAtSizes::BestSplits CostAtSizes::best_of(const SizedCost::Sizes& sizes) const {
    BestSplits best{1, seconds_at(sizes, 1)};
    for (double parts = most_splits(sizes); parts > 1; parts = std::floor(parts / 2)) {
        const double seconds = seconds_at(sizes, parts);
        if (seconds < best.seconds) best = {parts, seconds};
    }
    return best;
}

double CostAtSizes::seconds_at(const SizedCost::Sizes& sizes, double splits) const {
    const double tasks = sized.num_groups(sizes) * splits;
    double longest = sized.transfers(sizes) * core_weight * std::max(1.0, cores / tasks);
    longest = std::max(longest, longest_pipe(sizes, splits) * wave_of(tasks)) + starts_s(sizes, splits);
    return splits > 1 ? longest + 2 * splits * state_bytes * memory_weight + merge_s : longest;
}

bool CostAtSizes::held_by(const ModelLevel& level, const SizedCost::Sizes& sizes) const {
    if (!(level.capacity_bytes > 0)) return false;
    const double groups = once.num_groups(sizes), at_work = std::min(groups, cores / level.nodes);
    return once.transfers(sizes) / groups * at_work <= level.capacity_bytes;
}

double CostAtSizes::wave_of(double tasks) const { return std::ceil(tasks / cores) * cores / tasks; }

double CostAtSizes::idle_of(const SizedCost::Sizes& sizes, double splits) const {
    return cores / (sized.num_groups(sizes) * splits);
}

bool CostAtSizes::has_another(const SizedCost::Sizes& sizes, double splits) const {
    return sized.num_groups(sizes) * splits > cores && 2 * sized.memory(sizes) <= core_bytes();
}

double CostAtSizes::starts_s(const SizedCost::Sizes& sizes, double splits) const {
    if (machine.kind != MachineKind::gpu) return 0;
    const double rounds = std::ceil(sized.num_groups(sizes) * splits / cores);
    return machine.group_s.value * (has_another(sizes, splits) ? 1 : rounds);
}

double CostAtSizes::operations(const SizedWork& of, const SizedCost::Sizes& sizes, double share_of_chunks) const {
    return value_at(of.total, sizes) * (of.in_loop ? share_of_chunks : 1);
}

std::size_t CostAtSizes::pipe_index(const std::string& pipe) {
    const auto index = static_cast<std::size_t>(find(pipes, pipe) - pipes.begin());
    if (index == pipes.size()) pipes.push_back(pipe);
    return index;
}

double CostAtSizes::longest_pipe(const SizedCost::Sizes& sizes, double splits) const {
    pipe_seconds.assign(pipes.size(), 0);
    for (const SizedWork& w : work)
        pipe_seconds[w.pipe] += operations(w, sizes, run_fraction) / rate_of(w.rate) / w.sustained * w.overhead;
    for (std::size_t pipe = 0; pipe < pipes.size(); ++pipe)
        if (pipes[pipe] == "tensor") pipe_seconds[pipe] += waits_s(sizes, splits);
    return pipe_seconds.empty() ? 0 : *max_element(pipe_seconds);
}

double CostAtSizes::rate_of(const UnitRate& rate) const { return rate.per_clock * cores * machine.clock_hz.value; }

double CostAtSizes::share_that_runs(const std::map<AxisId, std::int64_t>& group,
                                    const std::map<AxisId, std::int64_t>& stream) const {
    if (!cost.may_skip) return 1;
    TileSizes sizes{std::vector<std::int64_t>(extents.size(), 0), std::vector<std::int64_t>(extents.size(), 0)};
    for (const auto& [axis, size] : group) sizes.group[axis] = size;
    for (const auto& [axis, size] : stream) sizes.stream[axis] = size;
    const TileCounter counter(derived.diagram, live, extents, sizes, std::int64_t{1} << (options.quick ? 8 : 14));
    double run = 0, all = 0;
    for (int loop = 0; loop < static_cast<int>(live.loops.size()); ++loop)
        if (!live.loops[at(loop)].is_sub)
            run += static_cast<double>(counter.chunks_run(loop)), all += static_cast<double>(counter.chunks(loop));
    return all > 0 ? run / all : 1;
}

double CostAtSizes::waits_s(const SizedCost::Sizes& sizes, double splits) const {
    if (has_another(sizes, splits)) return 0;
    const auto size_of = [&](AxisId axis) {
        for (std::size_t i = 0; i < sizes.size(); ++i)
            if ((i < cost.grouped.size() ? cost.grouped[i] : cost.streamed[i - cost.grouped.size()]) == axis)
                return static_cast<double>(sizes[i]);
        return static_cast<double>(extents[axis]);
    };
    double clocks = 0;
    for (const StatementWork& s : statements) {
        if (s.stream < 0 || !s.contraction) continue;
        const Instruction* instruction = instruction_for(machine, s.contraction->type);
        if (!instruction) continue;
        const double rows = product<double>(s.contraction->m, [&](AxisId axis) { return size_of(axis); });
        if (rows > static_cast<double>(instruction->m.to)) continue;
        clocks += std::ceil(static_cast<double>(extents[s.stream]) / size_of(s.stream)) * instruction->overhead_clocks.value;
    }
    return run_fraction * sized.num_groups(sizes) * clocks / (cores * machine.clock_hz.value);
}

double CostAtSizes::share_that_moves(const SizedCost::Sizes& sizes) const {
    if (!cost.may_skip) return 1;
    Size streamed;
    for (const ArrayTransfers& a : cost.arrays) streamed += is_in_loop(cost, a) ? a.per_launch : Size();
    const CompiledSize compiled(streamed, symbols);
    const double loop = value_at(compiled, sizes), all = sized.transfers(sizes);
    return all > 0 ? 1 - loop / all * (1 - run_fraction) : 1;
}

std::string CostAtSizes::sizes_text(const SizedCost::Sizes& sizes) const {
    std::string text;
    for (std::size_t i = 0; i < cost.grouped.size(); ++i)
        text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", derived.diagram.axis(cost.grouped[i]).name, sizes[i]);
    return text;
}

}  // namespace napkin
