#include "syntax/print.hpp"

#include <fmt/format.h>

#include "diagram/hidden_axes.hpp"
#include "diagram/symbol_names.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

/// New numbers for old ones, given out on first sight.
template <class Id>
struct Numbering {
    std::vector<Id> number;
    std::vector<Id> order;

    explicit Numbering(std::size_t count) : number(count, -1) {}
    void see(Id old) {
        Id& n = number[at(old)];
        if (n >= 0) return;
        n = Id::of(order.size());
        order.push_back(old);
    }
    [[nodiscard]] Id operator()(Id old) const { return number[at(old)]; }
};

void see_axes(const Expr& e, Numbering<AxisId>& axes) {
    visit(e, [&](const Expr& node) {
        if (const auto* n = as<AxisIndex>(node)) axes.see(n->axis);
        if (const auto* n = as<AxisSize>(node)) axes.see(n->axis);
        if (const auto* n = as<Read>(node)) {
            for (const Index& index : n->indices) {
                if (!index.affine()) continue;  // visited as an expression
                for (const auto& [axis, factor] : index.affine()->terms) axes.see(axis);
            }
        }
    });
}

/// With each sum of axes in the order of their numbers, as it is read.
Expr with_sums_in_order(const Expr& e) {
    if (const auto form = affine_form(e)) return Index(*form).value();
    if (as<Read>(e)) return e;
    return with_children(e, mapped<Expr>(children(e), with_sums_in_order));
}

/// Renumbers an affine index; others are renumbered as the expressions that they are.
Index renumbered(const Index& index, const Numbering<AxisId>& axes) {
    if (!index.affine()) return Index::of(with_sums_in_order(*index.expression()));
    Affine out;
    out.constant = index.affine()->constant;
    for (const auto& [axis, factor] : index.affine()->terms) out.add(axes(axis), factor);
    return out;
}

std::string signature_list(const Diagram& d, const std::vector<ArrayId>& ids) {
    std::string out;
    for (const ArrayId id : ids) {
        const Array& array = d.array(id);
        out += out.empty() ? "" : ", ";
        out += array.name;
        for (std::size_t i = 0; i < array.axes.size(); ++i) out += (i == 0 ? "[" : ", ") + d.axis(array.axes[i]).name;
        out += fmt::format("{}: {}", array.axes.empty() ? "" : "]", name(array.type));
        if (array.rows)
            out += fmt::format(" {} {}", array.rows->ascend ? "offsets" : "lengths", d.axis(array.rows->axis).name);
    }
    return out;
}

/// A plain index into a dimension of another number of elements reads a part of the array, and says so by an offset of
/// 0. Such axes stand in the expression under numbers past the diagram's, whose names carry the offset.
Expr with_offsets(const Diagram& d, const Expr& e) {
    const auto number = [&](AxisId id) { return d.axis(id).size ? d.axis(id).size->as_constant() : std::nullopt; };
    return transform(e, [&](const Expr& node) {
        const auto* r = as<Read>(node);
        if (!r) return node;
        std::vector<Index> indices = r->indices;
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const AxisId plain = indices[i].single_axis();
            if (plain < 0) continue;
            const auto given = number(plain), wanted = number(d.array(r->array).axes[i]);
            if (given && wanted && *given != *wanted) indices[i] = Affine::axis(AxisId::of(at(plain) + d.axes.size()));
        }
        return read(r->array, std::move(indices));
    });
}

std::string equation_text(const Diagram& d, const Equation& e) {
    const auto num_axes = AxisId::of(d.axes.size());
    ExprNames names;
    names.axis = [&](AxisId id) {
        return id < num_axes ? d.axis(id).name : d.axis(AxisId::of(id - num_axes)).name + " + 0";
    };
    names.array = [&](ArrayId id) { return d.array(id).name; };
    const Array& target = d.array(e.target);
    std::string out = target.name;
    for (std::size_t i = 0; i < target.axes.size(); ++i) out += (i == 0 ? "[" : ", ") + d.axis(target.axes[i]).name;
    out += fmt::format("{}: {} = ", target.axes.empty() ? "" : "]", name(target.type));
    std::string body = to_string(with_offsets(d, e.body), names);
    if (!e.reduce) return out + body;
    out += std::string(name(*e.reduce)) + "(";
    for (std::size_t i = 0; i < e.reduce_axes.size(); ++i) out += (i == 0 ? "" : ", ") + d.axis(e.reduce_axes[i]).name;
    // max(i) -x would read as a difference, and a comma would make operands of the body's parts.
    return out + ") " + (body.starts_with('-') ? "(" + body + ")" : body);
}

}  // namespace

Diagram canonical(const Diagram& d) {
    Numbering<ArrayId> arrays(d.arrays.size());
    Numbering<AxisId> axes(d.axes.size());
    for (const ArrayId id : d.inputs) arrays.see(id);
    for (const ArrayId id : d.outputs) arrays.see(id);
    for (const Equation& e : d.equations) arrays.see(e.target);

    for (const ArrayId id : arrays.order) {
        if (d.array(id).role != ArrayRole::input && d.array(id).role != ArrayRole::output) continue;
        for (const AxisId a : d.array(id).axes) axes.see(a);
    }
    for (const Equation& e : d.equations) {
        for (const AxisId a : d.array(e.target).axes) axes.see(a);
        for (const AxisId a : e.reduce_axes) axes.see(a);
        see_axes(e.body, axes);
    }
    for (const ArrayId id : arrays.order) {
        for (const AxisId a : d.array(id).axes) axes.see(a);
    }
    for (const ArrayId id : d.inputs)
        if (d.array(id).rows) axes.see(d.array(id).rows->axis);
    // Axes that other sizes are made of, in the order of those.
    for (std::size_t i = 0; i < axes.order.size(); ++i) {
        const auto& size = d.axis(axes.order[i]).size;
        if (!size) continue;
        for (const Symbol symbol : size->symbols()) axes.see(symbol.axis());
    }

    Diagram out;
    out.name = d.name;
    out.schedule = d.schedule;
    out.range = d.range;
    for (const AxisId id : axes.order) {
        Axis axis = d.axis(id);
        if (axis.size) axis.size = axis.size->renamed([&](Symbol s) { return axis_symbol(axes(s.axis())); });
        out.axes.push_back(std::move(axis));
    }
    for (const ArrayId id : arrays.order) {
        out.arrays.push_back(d.array(id));
        for (AxisId& a : out.arrays.back().axes) a = axes(a);
        if (auto& rows = out.arrays.back().rows) rows->axis = axes(rows->axis);
    }
    for (const ArrayId id : d.inputs) out.inputs.push_back(arrays(id));
    for (const ArrayId id : d.outputs) out.outputs.push_back(arrays(id));
    for (Equation e : d.equations) {
        e.target = arrays(e.target);
        for (AxisId& a : e.reduce_axes) a = axes(a);
        sort(e.reduce_axes);
        e.body = transform(e.body, [&](const Expr& node) -> Expr {
            if (const auto* n = as<AxisIndex>(node)) return axis_index(axes(n->axis));
            if (const auto* n = as<AxisSize>(node)) return axis_size(axes(n->axis));
            const auto* r = as<Read>(node);
            if (!r) return node;
            std::vector<Index> indices;
            for (const Index& index : r->indices) indices.push_back(renumbered(index, axes));
            return read(arrays(r->array), std::move(indices));
        });
        out.equations.push_back(std::move(e));
    }
    return with_hidden_axes(std::move(out));
}

std::string print(const Diagram& d) {
    std::string out = fmt::format("{}({}) -> {}\n", d.name, signature_list(d, d.inputs), signature_list(d, d.outputs));
    for (const Equation& e : d.equations) out += "    " + equation_text(d, e) + "\n";

    // Axes that the equations and the signature do not show as axes must be declared.
    std::vector<bool> shown(d.axes.size(), false);
    for (const Array& array : d.arrays) {
        for (const AxisId a : array.axes) shown[at(a)] = true;
    }
    for (const Equation& e : d.equations) {
        for (const AxisId a : e.reduce_axes) shown[at(a)] = true;
    }
    // One that indexes another axis' dimension would take its size.
    for (const Equation& e : d.equations) {
        visit(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            for (std::size_t i = 0; r && i < r->indices.size(); ++i) {
                const AxisId plain = r->indices[i].single_axis();
                if (plain >= 0 && plain != d.array(r->array).axes[i]) shown[at(plain)] = false;
            }
        });
    }
    for (const ArrayId id : d.inputs) {
        for (const AxisId a : d.array(id).axes) shown[at(a)] = true;
    }
    std::string sizes;
    for (const AxisId i : d.axes.ids()) {
        const Axis& axis = d.axes[i];
        if ((!axis.size && !axis.is_any && shown[i]) || is_hidden(d, i)) continue;
        sizes += (sizes.empty() ? "sizes " : ", ") + axis.name;
        const std::string size = axis.size ? to_string(*axis.size, symbol_names(d), true) : "";
        if (axis.is_any)
            sizes += size.empty() ? " = any" : fmt::format(" = any({})", size);
        else if (axis.size)
            sizes += " = " + size;
    }
    if (!sizes.empty()) out += sizes + "\n";

    if (!d.schedule.empty()) out += "schedule\n";
    // What is said of all kernels stands before the first line that names one.
    std::vector<ScheduleItem> schedule = d.schedule;
    std::stable_partition(schedule.begin(), schedule.end(), [](const ScheduleItem& item) { return item.kernel.empty(); });
    std::string kernel;
    for (const ScheduleItem& item : schedule) {
        if (item.kernel != kernel) out += "    kernel " + (kernel = item.kernel) + "\n";
        if (item.kind == ChoiceKind::kernel) continue;
        out += fmt::format("    {}", name(item.kind));
        if (!item.axis.empty()) out += " " + item.axis;
        if (!item.word.empty())
            out += " = " + item.word;
        else if (item.value)
            out += fmt::format(" = {}", *item.value);
        for (const ScheduleClause& c : item.clauses) {
            const auto& text = c.range.source->text;
            out += (&c == item.clauses.data() ? " " : ", ") + text.substr(c.range.begin, c.range.end - c.range.begin);
        }
        out += "\n";
    }
    return out;
}

}  // namespace napkin
