#include "diagram/diagram.hpp"

#include <fmt/format.h>
#include <set>
#include <string_view>

#include "support/result.hpp"

namespace napkin {

std::optional<AxisId> Diagram::find_axis(std::string_view wanted_name) const {
    for (const AxisId i : axes.ids()) {
        if (axes[i].name == wanted_name) return i;
    }
    return std::nullopt;
}

std::optional<ArrayId> Diagram::find_array(std::string_view wanted_name) const {
    for (const ArrayId i : arrays.ids()) {
        if (arrays[i].name == wanted_name) return i;
    }
    return std::nullopt;
}

const Equation* Diagram::definition(ArrayId id) const {
    for (const Equation& equation : equations) {
        if (equation.target == id) return &equation;
    }
    return nullptr;
}

ExprNames Diagram::names() const {
    // A broken id prints as such: the verifier's messages show what is wrong.
    const auto name_of = [](const auto& list, auto id) {
        return id >= 0 && at(id) < list.size() ? list[id].name : "#" + std::to_string(id);
    };
    return {[this, name_of](AxisId id) { return name_of(axes, id); },
            [this, name_of](ArrayId id) { return name_of(arrays, id); }};
}

std::vector<ScheduleItem> with_items_over(std::vector<ScheduleItem> items, const std::vector<ScheduleItem>& over) {
    std::erase_if(items, [&](const ScheduleItem& item) {
        return std::any_of(over.begin(), over.end(), [&](const ScheduleItem& o) { return fixes_all_of(o, item); });
    });
    items.insert(items.end(), over.begin(), over.end());
    return items;
}

Diagram with_any_sizes(Diagram diagram) {
    for (Axis& axis : diagram.axes) axis.is_any = true;
    return diagram;
}

AxisId add_axis(Diagram& diagram, const std::string& wanted_name, std::int64_t size, AxisId like) {
    std::string name = wanted_name;
    for (int n = 2; diagram.find_axis(name) || diagram.find_array(name); ++n)
        name = fmt::format("{}_{}", wanted_name, n);
    diagram.axes.push_back({name, Size(size), diagram.axis(like).range, diagram.axis(like).is_any});
    return AxisId::of(diagram.axes.size() - 1);
}

ArrayId add_array(Diagram& diagram, const std::string& wanted_name, std::vector<AxisId> axes, DType type, ArrayRole role) {
    // One walk over the names, however many suffixes are taken.
    std::set<std::string_view> taken;
    const auto note = [&](const std::string& name) {
        if (name.starts_with(wanted_name)) taken.insert(name);
    };
    for (const Array& array : diagram.arrays) note(array.name);
    for (const Axis& axis : diagram.axes) note(axis.name);
    std::string name = wanted_name;
    for (int i = 2; taken.contains(name); ++i) name = wanted_name + "_" + std::to_string(i);
    const auto id = ArrayId::of(diagram.arrays.size());
    diagram.arrays.push_back({std::move(name), std::move(axes), type, role, {}});
    return id;
}

Expr read_self(const Diagram& diagram, ArrayId id) {
    auto indices = mapped<Index>(diagram.array(id).axes, [&](AxisId axis) { return Affine::axis(axis); });
    return read(id, std::move(indices));
}

std::string to_string(const Diagram& diagram, const Equation& equation) {
    const ExprNames names = diagram.names();
    const auto list = [&](const std::vector<AxisId>& axes) {
        std::string out;
        for (AxisId axis : axes) out += (out.empty() ? "" : ", ") + names.axis(axis);
        return out;
    };
    std::string out = names.array(equation.target);
    if (const auto& axes = diagram.array(equation.target).axes; !axes.empty()) out += "[" + list(axes) + "]";
    out += " = ";
    std::string body = to_string(equation.body, names, equation.reduce.has_value());
    if (!equation.reduce) return out + body;
    out += std::string(name(*equation.reduce)) + "(" + list(equation.reduce_axes) + ") ";
    // max(i, j) -x would read as a difference.
    return out + (equation.reduce_axes.size() > 1 && body.starts_with('-') ? "(" + body + ")" : body);
}

}  // namespace napkin
