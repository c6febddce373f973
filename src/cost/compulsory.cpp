#include "cost/compulsory.hpp"

#include <cmath>

#include "diagram/box.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

double extent(const Extents& extents, AxisId axis) { return static_cast<double>(extents[axis]); }

/// Different values of an affine index within an array's dimension, at least: terms in ascending order of stride add up
/// to a run without gaps, or repeat it. Those before and past the ends are padding, which nothing reads.
double distinct(const Affine& index, double limit, const Extents& extents) {
    std::vector<std::pair<double, double>> terms;
    double low = 0, high = 0;
    for (const auto& [axis, c] : index.terms) {
        const double stride = static_cast<double>(c), size = extent(extents, axis);
        terms.emplace_back(std::abs(stride), size);
        (c < 0 ? low : high) += stride * (size - 1);
    }
    sort(terms);
    double run = 1, count = 1;
    bool gaps = false;
    for (const auto& [stride, size] : terms) {
        gaps = gaps || stride > run;
        run += stride * (size - 1);
        count = gaps ? std::max(count, size) : run;
    }
    const auto constant = static_cast<double>(index.constant);
    const double outside = std::max(0.0, -(low + constant)) + std::max(0.0, high + constant - (limit - 1));
    return std::max(0.0, count - outside);
}
/// Different values of an index, at least: of a quotient alone all of them, and of one that data decide a single one.
double distinct(const Index& index, double limit, const Extents& extents) {
    if (index.affine()) return distinct(*index.affine(), limit, extents);
    const Index known = with_sizes(index, extents);
    const auto* quotient = known.expression() ? as<Binary>(*known.expression()) : nullptr;
    if (!quotient || quotient->op != BinaryOp::floor_div || !as<AxisIndex>(quotient->a)) return 1;
    const double values = static_cast<double>(range_of(known, std::vector<std::int64_t>(extents.size(), 0), extents).size());
    return std::min(values, limit);
}

/// Clocks of one core for one operation. A division may become a product, an exponential one of a difference that is
/// known not to be positive, and an error function an exponential.
double least_clocks(const Machine& machine, OpKind kind) {
    const auto clocks = [&](const std::string& unit) {
        const double rate = per_clock(machine, unit, DType::f32);
        return rate > 0 ? 1 / rate : 0;
    };
    const std::string own(name(kind));
    if (kind == OpKind::div) return std::min(clocks(own), clocks("simple"));
    if (kind == OpKind::exp) return std::min(clocks(own), clocks("exp_nonpositive"));
    if (kind == OpKind::erf) return std::min(clocks(own), clocks("exp"));
    return clocks(own);
}

}  // namespace

/// What is skipped of a loop, loads included, is a matter of its chunks.
bool may_skip(const Kernel& kernel) {
    return any_of(kernel.stages, [](const Stage& stage) {
        const auto* loop = std::get_if<Loop>(&stage);
        return loop && (!loop->support.empty() || !loop->masks.empty());
    });
}

double values_read(const Diagram& diagram, const std::vector<StatementWork>& work, ArrayId input, const Extents& extents) {
    const std::vector<AxisId>& limits = diagram.array(input).axes;
    double most = 0;
    for (const StatementWork& s : work)
        for (const OperandRead& read : s.operands) {
            if (read.array != input) continue;
            double all = 1, largest = 1;
            std::size_t axes = 0;
            for (std::size_t d = 0; d < read.dims.size(); ++d) {
                const Index& dim = read.dims[d];
                const double values = distinct(dim, extent(extents, limits[d]), extents);
                all *= values, largest = std::max(largest, values), axes += dim.axes().size();
            }
            most = std::max(most, axes == read.axes.size() ? all : largest);
        }
    return most;
}

Compulsory compulsory_transfers(const Derived& derived, const Kernel& kernel, const std::vector<StatementWork>& work,
                                const Extents& extents) {
    const Diagram& diagram = derived.diagram;
    Compulsory out;
    for (const ArrayId a : kernel.inputs)
        out.loaded_bytes += values_read(diagram, work, a, extents) * bytes(diagram.array(a).type);
    for (const ArrayId a : kernel.outputs)
        out.stored_bytes += static_cast<double>(count_values(diagram, a, extents)) * bytes(diagram.array(a).type);
    return out;
}

double least_seconds_of_moving(const Machine& machine, const Compulsory& moved) {
    const Level& first = machine.levels[1];
    const double read = first.bandwidth_bytes_per_s.value,
                 copy = std::max(first.copy_bandwidth_bytes_per_s.value, machine.nontemporal_copy_bytes_per_s.value);
    const double loading = moved.loaded_bytes / read,
                 storing = moved.stored_bytes * (copy > 0 ? std::max(0.0, 2 / copy - 1 / read) : 1 / read);
    return (loading + storing) / first.instances.value;
}

double least_seconds_to_start(const Machine& machine) {
    return machine.kind == MachineKind::gpu ? machine.launch_s.value
                                            : std::min(machine.launch_s.value, machine.group_s.value);
}

double least_seconds(const Derived& derived, const Kernel& kernel, const std::vector<StatementWork>& work,
                     const Extents& extents, const Machine& machine, ComputedBy by) {
    Compulsory moved = compulsory_transfers(derived, kernel, work, extents);
    if (may_skip(kernel)) moved.loaded_bytes = 0;
    const double moving = least_seconds_of_moving(machine, moved);
    double clocks = 0;
    for (const StatementWork& s : work)
        for (const OpCount& op : s.ops) {
            double points = 1;
            for (const AxisId axis : op.axes) points *= extent(extents, axis);
            clocks += static_cast<double>(op.count) * points * least_clocks(machine, op.kind);
        }
    const bool is_known = by == ComputedBy::cores && !may_skip(kernel);
    const double computing = is_known ? clocks / (machine.cores.value * machine.clock_hz.value) : 0;
    return least_seconds_to_start(machine) + std::max(moving, computing);
}

}  // namespace napkin
