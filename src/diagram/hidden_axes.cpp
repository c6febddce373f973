#include "diagram/hidden_axes.hpp"

#include <utility>

#include "diagram/factor_conditions.hpp"
#include "diagram/flat_axes.hpp"
#include "diagram/grouped_rows.hpp"
#include "diagram/packed_terms.hpp"
#include "diagram/padded_reads.hpp"
#include "diagram/phases.hpp"
#include "diagram/unrolled_windows.hpp"
#include "diagram/window_rows.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

bool is_hidden(const Diagram& diagram, AxisId axis) {
    const auto& size = diagram.axis(axis).size;
    if (!size || (size->as_constant() && !diagram.axis(axis).rounds_down)) return false;
    const auto is_in = [&](const Expr& e) {
        bool found = depends_on_axis(e, axis);
        visit(e, [&](const Expr& node) {
            const auto* of = as<AxisSize>(node);
            found = found || (of && of->axis == axis);
        });
        return found;
    };
    return none_of(diagram.arrays,
                   [&](const Array& a) { return contains(a.axes, axis) || (a.rows && a.rows->axis == axis); }) &&
           none_of(diagram.equations, [&](const Equation& e) { return contains(e.reduce_axes, axis) || is_in(e.body); });
}

AxisId free_axis(const Diagram& diagram, const Size& size, const std::vector<AxisId>& taken, std::int64_t multiple) {
    for (const AxisId axis : diagram.axes.ids())
        if (diagram.axis(axis).size == size && diagram.axis(axis).multiple == multiple && !contains(taken, axis) &&
            is_hidden(diagram, axis))
            return axis;
    return -1;
}

AxisId free_axis_of(Diagram& diagram, const Size& size, const std::vector<AxisId>& taken, AxisId like,
                    const std::string& suffix, std::int64_t multiple) {
    if (const AxisId known = free_axis(diagram, size, taken, multiple); known >= 0) return known;
    const AxisId axis = add_axis(diagram, diagram.axis(like).name + suffix, 1, like);
    diagram.axes[axis].size = size;
    diagram.axes[axis].multiple = multiple;
    diagram.axes[axis].is_any = diagram.axis(like).is_any;
    return axis;
}

Diagram with_hidden_axes(Diagram diagram) {
    add_flat_axes(diagram);
    diagram = with_axes_of_packed_terms(with_axes_of_groups(with_axes_of_padding(std::move(diagram))));
    diagram = with_axes_of_windows(std::move(diagram));
    // Padded reads have no conditions that tell axes apart, which then may be one.
    // Nor have they any that stand between a product and its windows.
    Diagram padded = with_axes_of_windows(with_padded_reads(with_conditions_at_factors(diagram)));
    add_flat_axes(padded);
    diagram.axes = with_axes_of_window_rows(std::move(padded)).axes;
    // Products without the conditions of phases are rewritten further.
    const std::size_t before = diagram.axes.size();
    diagram = with_axes_of_phases(std::move(diagram));
    if (diagram.axes.size() == before) return diagram;
    Diagram phased = with_axes_of_padding(with_phases(diagram));
    add_flat_axes(phased);
    phased = with_padded_reads(with_conditions_at_factors(std::move(phased)));
    add_flat_axes(phased);
    diagram.axes = std::move(phased.axes);
    return diagram;
}

std::vector<AxisId> axes_of_text(const Diagram& diagram) {
    std::vector<AxisId> out;
    for (const AxisId axis : diagram.axes.ids())
        if (!is_hidden(diagram, axis)) out.push_back(axis);
    return out;
}

}  // namespace napkin
