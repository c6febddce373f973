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

/// What each part is where the flat axis has a value: t // (size of those behind it) % size of its own.
std::vector<Index> indices_of(const std::vector<AxisId>& parts, AxisId flat) {
    std::vector<Index> out(parts.size(), Index(Affine::axis(flat)));
    Expr behind;
    for (std::size_t p = parts.size(); p-- > 0;) {
        Expr e = axis_index(flat);
        if (behind) e = binary(BinaryOp::floor_div, e, behind);
        if (p > 0) e = binary(BinaryOp::mod, e, axis_size(parts[p]));
        out[p] = Index::of(e);
        behind = behind ? binary(BinaryOp::mul, axis_size(parts[p]), behind) : axis_size(parts[p]);
    }
    return out;
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
    const std::vector<Index> indices = indices_of(parts, flat);
    const auto is_part = [&](AxisId axis) { return contains(parts, axis); };
    for (Equation& e : equations) {
        if (any_of(diagram.array(e.target).axes, is_part)) return std::nullopt;
        if (none_of(e.reduce_axes, is_part)) continue;
        if (!sums_over(e, parts)) return std::nullopt;
        e.reduce_axes = {flat};
        e.body = substitute_axes(e.body, [&](AxisId axis) -> std::optional<Index> {
            const auto at_part = find(parts, axis);
            return at_part == parts.end() ? std::nullopt : std::optional(indices[at(at_part - parts.begin())]);
        });
    }
    return equations;
}

}  // namespace napkin
