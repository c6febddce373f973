#include <cmath>

#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// The chunks that each stream of the kernel has.
std::map<AxisId, double> k_blocks_of_streams(const StepContext& context, const Assigned& assigned) {
    std::map<AxisId, double> out;
    for (const TileStatement& s : assigned.kernel.body) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (!loop || (*loop)->is_sub) continue;
        const AxisId axis = (*loop)->axis;
        const std::int64_t chunk = context.sizes.stream[axis];
        out[axis] += chunk > 0 ? static_cast<double>(ceil_div(context.extents[axis], chunk)) : 1;
    }
    return out;
}

/// How many rows of other axes than those that warpgroups share a group has: the charts are of one of them.
double rows_beside(const StepContext& context, const Assigned& assigned) {
    std::set<AxisId> columns;
    for (const StatementWork& w : statement_work(context.diagram, assigned.kernel))
        if (w.contraction)
            for (const AxisId axis : columns_of(context, *w.contraction)) columns.insert(axis);
    double out = 1;
    for (const AxisId axis : assigned.kernel.group_axes) {
        const std::int64_t size = context.sizes.group[axis];
        if (!context.warpgroup.contains(axis) && !columns.contains(axis) && size > 0 && size < context.extents[axis])
            out *= static_cast<double>(size);
    }
    return out;
}

}  // namespace

SteadyState steady_state(const StepContext& context, const Assigned& assigned, const KernelSteps& steps,
                         double stream_clocks) {
    SteadyState out;
    const Machine& machine = context.machine;
    const double beside = rows_beside(context, assigned);
    out.group_clocks = stream_clocks * beside, out.cores = machine.cores.value;
    const std::map<AxisId, double> chunks = k_blocks_of_streams(context, assigned);
    double flops = 0, longest = 0;
    for (const StreamChart& chart : steps.charts) {
        const double clocks = chart.chart.interval * chunks.at(chart.stream) * beside;
        flops += chart.tensor_flop_per_s * clocks / (machine.cores.value * machine.clock_hz.value);
        if (clocks > longest) longest = clocks, out.bound_by = chart.chart.bound_by;
    }
    for (const auto& [axis, n] : chunks)
        for (const RowFloor& floor : steps.throughput.floors)
            if (const double clocks = floor.rows * floor.clocks * n; clocks > out.group_clocks)
                out.group_clocks = clocks, out.bound_by = floor.level;
    for (const AxisId axis : assigned.kernel.group_axes) {
        const std::int64_t size = context.sizes.group[axis];
        if (size > 0) out.groups *= static_cast<double>(ceil_div(context.extents[axis], size));
    }
    out.seconds = out.group_clocks * std::ceil(out.groups / out.cores) / machine.clock_hz.value;
    if (out.seconds > 0) out.tensor_flop_per_s = flops * out.groups / out.seconds;
    return out;
}

}  // namespace napkin
