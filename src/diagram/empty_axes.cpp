#include "diagram/empty_axes.hpp"

#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "algebra/number.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// The axes whose size is 0, by itself or by the sizes that it is made of.
std::set<AxisId> axes_without_values(const Diagram& d) {
    std::set<AxisId> empty, busy;
    const std::function<std::optional<double>(AxisId)> value = [&](AxisId axis) -> std::optional<double> {
        // A size that depends on itself is refused elsewhere.
        if (!d.axis(axis).size || !busy.insert(axis).second) return std::nullopt;
        const auto size = d.axis(axis).size->evaluate([&](Symbol s) { return value(s.axis()); });
        busy.erase(axis);
        return size;
    };
    for (const AxisId axis : d.axes.ids())
        if (value(axis) == 0) empty.insert(axis);
    return empty;
}

}  // namespace

Expr of_nothing(ReduceOp op, DType type) {
    return is_float(type) ? constant(identity(op)) : integer_constant(whole_of(type, identity(op)));
}

bool has_no_values(const Diagram& diagram, AxisId axis) {
    const std::optional<Size>& size = diagram.axis(axis).size;
    return size && size->is_zero();
}

bool is_empty(const Diagram& diagram, ArrayId array) {
    return any_of(diagram.array(array).axes, [&](AxisId axis) { return has_no_values(diagram, axis); });
}

Diagram without_empty_axes(Diagram d) {
    const std::set<AxisId> empty = axes_without_values(d);
    if (empty.empty()) return d;
    for (const AxisId axis : empty) d.axes[axis].size = Size(std::int64_t{0});
    for (Equation& e : d.equations) {
        const DType type = d.array(e.target).type;
        if (is_empty(d, e.target)) {
            e.body = constant(0);
        } else if (any_of(e.reduce_axes, [&](AxisId a) { return empty.contains(a); })) {
            e.body = of_nothing(*e.reduce, type);
        } else {
            e.body = transform(e.body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                const auto* size = as<AxisSize>(node);
                return (r && is_empty(d, r->array)) || (size && empty.contains(size->axis)) ? constant(0) : node;
            });
            continue;
        }
        e.reduce.reset();
        e.reduce_axes.clear();
    }
    std::erase_if(d.schedule, [](const ScheduleItem& item) { return !item.axis.empty() || !item.kernel.empty(); });
    return d;
}

}  // namespace napkin
