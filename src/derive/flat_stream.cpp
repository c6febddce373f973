#include "derive/flat_stream.hpp"

#include "diagram/flat_axes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

bool sums_over(const Equation& e, std::vector<AxisId> axes) {
    sort(axes);
    return e.reduce == ReduceOp::sum && e.reduce_axes == axes;
}

}  // namespace

std::vector<AxisId> flat_axes_of(const Diagram& diagram, const std::vector<Equation>& equations) {
    std::vector<AxisId> out;
    for (const AxisId axis : diagram.axes.ids()) {
        const std::vector<AxisId> parts = parts_of_flat_axis(diagram, axis);
        if (parts.empty() || any_of(parts, [&](AxisId part) { return is_named_in_schedule(diagram, part); })) continue;
        if (any_of(equations, [&](const Equation& e) { return sums_over(e, parts); })) out.push_back(axis);
    }
    return out;
}

std::optional<std::vector<Equation>> along_flat_axis(const Diagram& diagram, std::vector<Equation> equations, AxisId flat) {
    const std::vector<AxisId> parts = parts_of_flat_axis(diagram, flat);
    const std::vector<Expr> values = values_of_parts(parts, axis_index(flat));
    const auto is_part = [&](AxisId axis) { return contains(parts, axis); };
    for (Equation& e : equations) {
        if (any_of(diagram.array(e.target).axes, is_part)) return std::nullopt;
        if (none_of(e.reduce_axes, is_part)) continue;
        if (!sums_over(e, parts)) return std::nullopt;
        e.reduce_axes = {flat};
        e.body = substitute_axes(e.body, [&](AxisId axis) -> std::optional<Index> {
            const auto at_part = find(parts, axis);
            return at_part == parts.end() ? std::nullopt : std::optional(Index::of(values[at(at_part - parts.begin())]));
        });
    }
    return equations;
}

}  // namespace napkin
