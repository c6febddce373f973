// Making a failing diagram small: edits that drop something, each followed by clearing away what nothing needs any
// more.
#include <algorithm>
#include <map>
#include <set>

#include "algebra/expr_walk.hpp"
#include "diagram/verifier.hpp"
#include "support/random_diagram.hpp"

namespace napkin {
namespace {
Expr replace_reads(const Expr& e, const std::function<Expr(const Read&)>& f) {
    return transform(e, [&](const Expr& node) { return as<Read>(node) ? f(*as<Read>(node)) : node; });
}

/// Without the equations, arrays and axes that no output needs.
Diagram cleaned(const Diagram& d) {
    std::set<ArrayId> needed(d.outputs.begin(), d.outputs.end());
    std::vector<Equation> equations;
    for (auto equation = d.equations.rbegin(); equation != d.equations.rend(); ++equation) {
        if (!needed.contains(equation->target)) continue;
        for (ArrayId id : read_arrays(equation->body)) needed.insert(id);
        equations.push_back(*equation);
    }
    std::reverse(equations.begin(), equations.end());

    std::set<AxisId> axes;
    for (ArrayId id : needed) axes.insert(d.array(id).axes.begin(), d.array(id).axes.end());
    for (const Equation& equation : equations) {
        axes.insert(equation.reduce_axes.begin(), equation.reduce_axes.end());
        visit(equation.body, [&](const Expr& node) {
            if (const auto* size = as<AxisSize>(node)) axes.insert(size->axis);
        });
    }
    for (std::size_t grown = 0; grown != axes.size();) {
        grown = axes.size();
        for (AxisId axis : std::set<AxisId>(axes)) {
            if (!d.axis(axis).size) continue;
            for (const Symbol symbol : d.axis(axis).size->symbols()) axes.insert(symbol.axis());
        }
    }

    std::map<AxisId, AxisId> new_axis;
    std::map<ArrayId, ArrayId> new_array;
    Diagram out;
    out.name = d.name;
    for (AxisId axis : axes) {
        new_axis[axis] = AxisId::of(out.axes.size());
        out.axes.push_back(d.axis(axis));
    }
    for (Axis& axis : out.axes)
        if (axis.size) axis.size = axis.size->renamed([&](Symbol s) { return axis_symbol(new_axis.at(s.axis())); });
    const auto renumber = [&](std::vector<AxisId> list) {
        for (AxisId& axis : list) axis = new_axis.at(axis);
        return list;
    };
    for (ArrayId id : needed) {
        new_array[id] = ArrayId::of(out.arrays.size());
        out.arrays.push_back(d.array(id));
        out.arrays.back().axes = renumber(d.array(id).axes);
    }
    for (ArrayId id : d.inputs) {
        if (needed.contains(id)) out.inputs.push_back(new_array.at(id));
    }
    for (ArrayId id : d.outputs) out.outputs.push_back(new_array.at(id));
    for (Equation equation : equations) {
        equation.target = new_array.at(equation.target);
        equation.reduce_axes = renumber(equation.reduce_axes);
        equation.body = transform(equation.body, [&](const Expr& node) {
            if (const auto* index = as<AxisIndex>(node)) return axis_index(new_axis.at(index->axis));
            if (const auto* size = as<AxisSize>(node)) return axis_size(new_axis.at(size->axis));
            const auto* r = as<Read>(node);
            if (!r) return node;
            std::vector<Index> indices;
            for (const Index& index : r->indices) {
                const auto renumbered = [&](AxisId axis) {
                    return std::optional<Index>(Affine::axis(new_axis.at(axis)));
                };
                indices.push_back(index.affine() ? substitute(index, renumbered) : index);
            }
            return read(new_array.at(r->array), std::move(indices));
        });
        out.equations.push_back(std::move(equation));
    }
    return out;
}

/// As if the axis had one position.
Diagram without_axis(Diagram d, AxisId dropped) {
    const std::string name = d.axis(dropped).name;
    std::vector<std::vector<std::size_t>> kept(d.arrays.size());  // dimensions that stay
    for (const ArrayId i : d.arrays.ids()) {
        std::vector<AxisId> axes;
        for (std::size_t j = 0; j < d.arrays[i].axes.size(); ++j) {
            if (d.arrays[i].axes[j] == dropped) continue;
            kept[i].push_back(j);
            axes.push_back(d.arrays[i].axes[j]);
        }
        d.arrays[i].axes = std::move(axes);
    }
    for (Equation& equation : d.equations) {
        std::erase(equation.reduce_axes, dropped);
        if (equation.reduce_axes.empty()) equation.reduce = std::nullopt;
        equation.body = transform(equation.body, [&](const Expr& node) {
            if (const auto* index = as<AxisIndex>(node); index && index->axis == dropped) return constant(0);
            if (const auto* size = as<AxisSize>(node); size && size->axis == dropped) return constant(1);
            const auto* r = as<Read>(node);
            if (!r) return node;
            std::vector<Index> indices;
            for (std::size_t j : kept[at(r->array)]) {
                const auto at_zero = [&](AxisId axis) {
                    return axis == dropped ? std::optional<Index>(Affine{}) : std::nullopt;
                };
                indices.push_back(r->indices[j].affine() ? substitute(r->indices[j], at_zero) : r->indices[j]);
            }
            return read(r->array, std::move(indices));
        });
    }
    for (Axis& axis : d.axes) {
        if (axis.size) axis.size = axis.size->substitute(axis_symbol(dropped), Size(1));
    }
    d.axes[dropped].size = std::nullopt;
    return d;
}

/// The array becomes an input: what computed it is gone.
Diagram cut_at(Diagram d, ArrayId id) {
    std::erase_if(d.equations, [&](const Equation& equation) { return equation.target == id; });
    std::erase(d.outputs, id);
    d.arrays[id].role = ArrayRole::input;
    d.inputs.push_back(id);
    return d;
}

/// What reads the array reads 1.
Diagram without_array(Diagram d, ArrayId id) {
    std::erase_if(d.equations, [&](const Equation& equation) { return equation.target == id; });
    std::erase(d.outputs, id);
    for (Equation& equation : d.equations) {
        equation.body = replace_reads(
            equation.body, [&](const Read& r) { return r.array == id ? constant(1) : read(r.array, r.indices); });
    }
    if (d.array(id).role == ArrayRole::output) d.arrays[id].role = ArrayRole::temporary;
    return d;
}

Diagram without_output(Diagram d, ArrayId id) {
    std::erase(d.outputs, id);
    d.arrays[id].role = ArrayRole::temporary;
    return d;
}

/// What is computed from the array is gone, and so is what has no part in it.
Diagram only_output(Diagram d, ArrayId id) {
    for (ArrayId other : d.outputs) d.arrays[other].role = ArrayRole::temporary;
    d.outputs = {id};
    d.arrays[id].role = ArrayRole::output;
    return d;
}

std::size_t weight(const Diagram& d) {
    std::size_t sum = 4 * (d.axes.size() + d.arrays.size() + d.outputs.size());
    for (const Axis& axis : d.axes) sum += axis.size ? axis.size->terms().size() : 0;
    for (const Array& array : d.arrays) sum += array.type == DType::f32 ? 0 : 1;
    for (const Equation& equation : d.equations) {
        sum += 4 + 2 * equation.reduce_axes.size();
        for_each_postorder(equation.body, [&](const Expr& node) {
            sum += as<Constant>(node) ? 1 : 2;
            if (const auto* r = as<Read>(node)) {
                for (const Index& index : r->indices)
                    sum += index.axes().size() + (index.affine() && index.affine()->constant == 0 ? 0 : 1);
            }
        });
    }
    return sum;
}

}  // namespace

std::vector<Diagram> shrink(const Diagram& diagram) {
    const std::size_t whole = weight(diagram);
    std::vector<Diagram> smaller;
    const auto offer = [&](const Diagram& edited) {
        if (edited.outputs.empty()) return;
        Diagram candidate = cleaned(edited);
        if (weight(candidate) >= whole || !verify(candidate).empty()) return;
        std::map<std::string, std::int64_t> sizes;
        for (const Axis& axis : candidate.axes) {
            if (!axis.size) sizes[axis.name] = 2;
        }
        if (bind_sizes(candidate, sizes).ok()) smaller.push_back(std::move(candidate));
    };
    offer(diagram);
    for (const Equation& equation : diagram.equations) offer(only_output(diagram, equation.target));
    for (ArrayId id : diagram.outputs) offer(without_output(diagram, id));
    for (std::size_t i = diagram.equations.size(); i-- > 0;) offer(cut_at(diagram, diagram.equations[i].target));
    for (std::size_t i = 0; i < diagram.axes.size(); ++i) offer(without_axis(diagram, AxisId::of(i)));
    for (std::size_t i = 0; i < diagram.arrays.size(); ++i) offer(without_array(diagram, ArrayId::of(i)));
    for (const ArrayId i : diagram.arrays.ids()) {
        Diagram edited = diagram;
        edited.arrays[i].type = DType::f32;
        offer(edited);
    }
    // A part of a body gives way to one of its own parts, or to 1.
    for (std::size_t i = 0; i < diagram.equations.size(); ++i) {
        const auto put = [&](const Expr& old, const Expr& replacement) {
            Diagram edited = diagram;
            edited.equations[i].body = transform(
                diagram.equations[i].body, [&](const Expr& node) { return equal(node, old) ? replacement : node; });
            offer(edited);
        };
        visit(diagram.equations[i].body, [&](const Expr& node) {
            for_each_child(*node, [&](const Expr& child) { put(node, child); });
            if (!as<Constant>(node)) put(node, constant(1));
        });
    }
    return smaller;
}

Diagram reduce_failure(const Diagram& diagram, const std::function<bool(const Diagram&)>& fails) {
    Diagram current = diagram;
    for (bool progress = true; progress;) {
        progress = false;
        for (Diagram& candidate : shrink(current)) {
            if (!fails(candidate)) continue;
            current = std::move(candidate);
            progress = true;
            break;
        }
    }
    return current;
}

}  // namespace napkin
