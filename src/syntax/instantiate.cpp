// What a bound call becomes: the callee's equations over the caller's axes and arrays, or, where all is scalar, an
// expression.
#include <fmt/format.h>

#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {

/// Bottom up over an expression whose parts may be shared: own(node) + combine over the children.
template <class Own, class Combine>
std::size_t fold_up(const Expr& e, Own own, Combine combine) {
    std::unordered_map<const ExprNode*, std::size_t> values;
    for_each_postorder(e, [&](const Expr& node) {
        std::size_t below = 0;
        for_each_child(*node, [&](const Expr& child) { below = combine(below, values.at(child.get())); });
        values[node.get()] = own(node) + below;
    });
    return values.at(e.get());
}

std::size_t depth_of(const Expr& e) {
    return fold_up(e, [](const Expr&) { return 1; }, [](std::size_t a, std::size_t b) { return std::max(a, b); });
}

/// How often the expression, written out, reads the array.
std::size_t count_reads(const Expr& e, ArrayId array) {
    const auto own = [&](const Expr& node) { return as<Read>(node) && as<Read>(node)->array == array ? 1 : 0; };
    return fold_up(e, own, [](std::size_t a, std::size_t b) { return std::min(a + b, limits::max_expr_nodes); });
}

}  // namespace

AxisId Elaborator::map_axis(Binding& b, AxisId callee_axis) {
    AxisId& image = b.axes[callee_axis];
    if (image >= 0) return image;
    const Axis& own = b.callee->diagram.axis(callee_axis);
    if (b.callee->globals.contains(own.name)) {
        axis_names_.insert(own.name);
        image = axis(own.name);
    } else {
        image = fresh_axis(own.name);
    }
    return image;
}

Affine Elaborator::map_index(Binding& b, const Affine& index) {
    Affine out;
    out.constant = index.constant;
    for (const auto& [a, factor] : index.terms) out.add(map_axis(b, a), factor);
    return out;
}

Expr Elaborator::map_parameter(Binding&, const Parameter& p, const std::vector<Index>& indices) {
    const auto* r = as<Read>(p.expr);
    if (!r || p.own.empty()) return p.expr;
    const auto there = [&](AxisId axis) -> std::optional<Index> {
        const auto own = find(p.own, axis);
        if (own == p.own.end()) return std::nullopt;
        return indices[at(own - p.own.begin())];
    };
    auto out = mapped<Index>(r->indices, [&](const Index& index) { return substitute(index, there); });
    return read(r->array, std::move(out));
}

/// The axes of the caller that each result has: the images of its own, and those it is woven over.
std::vector<std::set<AxisId>> Elaborator::result_axes(Binding& b) {
    const Diagram& c = b.callee->diagram;
    std::vector<std::set<AxisId>> woven(c.arrays.size());
    for (std::size_t p = 0; p < c.inputs.size() && p < b.parameters.size(); ++p) {
        for (const AxisId a : free_axes(b.parameters[p].expr)) {
            if (!contains(b.parameters[p].own, a)) woven[at(c.inputs[p])].insert(a);
        }
    }
    for (const Equation& e : c.equations) {
        std::set<AxisId>& target = woven[at(e.target)];
        for (const ArrayId id : read_arrays(e.body)) {
            const std::set<AxisId>& source = woven[at(id)];
            target.insert(source.begin(), source.end());
        }
    }
    std::vector<std::set<AxisId>> out;
    for (const ArrayId id : c.outputs) {
        std::set<AxisId> axes = woven[at(id)];
        for (const AxisId a : c.array(id).axes) axes.insert(map_axis(b, a));
        out.push_back(std::move(axes));
    }
    return out;
}

std::vector<ArrayId> Elaborator::instantiate(Binding& b, const Frame& frame, const std::vector<ArrayId>& targets) {
    const Diagram& c = b.callee->diagram;
    // Every array of the callee: the array that it becomes, and for each of that one's axes the callee's dimension, or
    // -1: woven.
    struct Image {
        ArrayId id = -1;
        std::vector<int> dimensions;
    };
    std::vector<Image> images(c.arrays.size());
    std::vector<int> parameter_of(c.arrays.size(), -1), result_of(c.arrays.size(), -1);
    for (std::size_t p = 0; p < c.inputs.size(); ++p) {
        parameter_of[at(c.inputs[p])] = static_cast<int>(p);
        if (p >= b.parameters.size()) b.parameters.push_back({constant(*b.callee->defaults[p]), {}});
    }
    for (std::size_t r = 0; r < c.outputs.size(); ++r) result_of[at(c.outputs[r])] = static_cast<int>(r);

    const auto map_expr = [&](const Expr& e) {
        return transform(e, [&](const Expr& node) -> Expr {
            if (const auto* n = as<AxisIndex>(node)) return axis_index(map_axis(b, n->axis));
            if (const auto* n = as<AxisSize>(node)) return axis_size(map_axis(b, n->axis));
            const auto* r = as<Read>(node);
            if (!r) return node;
            std::vector<Index> indices;  // those that are not affine are expressions below the read, and done
            for (const Index& index : r->indices)
                indices.push_back(index.affine() ? map_index(b, *index.affine()) : index);
            const int parameter = parameter_of[at(r->array)];
            if (parameter >= 0) return map_parameter(b, b.parameters[at(parameter)], indices);
            const Image& image = images[at(r->array)];
            const Array& array = d_.array(image.id);
            std::vector<Index> placed;
            for (std::size_t i = 0; i < array.axes.size(); ++i) {
                const int dimension = image.dimensions[i];
                placed.push_back(dimension < 0 ? Affine::axis(array.axes[i]) : indices[at(dimension)]);
            }
            return read(image.id, std::move(placed));
        });
    };

    const std::size_t before = errors();
    std::vector<AxisId> own_images;
    for (const AxisId image : b.axes)
        if (image >= 0) own_images.push_back(image);
    const Frame inner = frame.inside(own_images);
    for (const Equation& e : c.equations) {
        if (over_limit_ || errors() > before) return {};
        if (!spend(count_nodes(e.body), b.range)) return {};
        const Expr mapped_body = map_expr(e.body);
        Expr body = guarded(mapped_body, inner);
        // What a guard depends on is woven too.
        if (body != mapped_body)
            for (const AxisId a : free_axes(body))
                if (!contains(b.axes, a)) b.woven.insert(a);
        if (depth_of(body) > limits::max_nesting) {
            error(Code::nesting_too_deep, b.range,
                  fmt::format("{} makes an expression that is nested too deep", b.name.text),
                  fmt::format("at most {} operators and calls inside each other", limits::max_nesting));
            return {};
        }
        std::vector<AxisId> reduce_axes;
        for (const AxisId a : e.reduce_axes) reduce_axes.push_back(map_axis(b, a));
        for (const AxisId a : reduce_axes) {
            if (depends_on_axis(body, a)) continue;
            error(Code::unused_reduction_axis, b.range,
                  fmt::format("what {} reduces over {} does not depend on it here", b.name.text, d_.axis(a).name),
                  fmt::format("arguments that depend on {}", d_.axis(a).name));
            return {};
        }
        visit(body, [&](const Expr& node) { check_coordinates(node, b.range); });
        if (errors() > before) return {};
        const Array& own = c.array(e.target);
        const auto own_axes = mapped<AxisId>(own.axes, [&](AxisId a) { return map_axis(b, a); });
        const std::vector<AxisId> free = free_axes(body);

        const int result = result_of[at(e.target)];
        const ArrayId target = result >= 0 ? targets[at(result)] : ArrayId();
        Image image;
        if (target >= 0) {
            image.id = target;
        } else {
            std::vector<AxisId> axes;
            for (const AxisId a : frame.bound) {
                if (b.woven.contains(a) && contains(free, a)) axes.push_back(a);
            }
            for (const AxisId a : free) {
                if (b.woven.contains(a) && !contains(axes, a)) axes.push_back(a);
            }
            append(axes, own_axes);
            // What the callee named after its result is named after the caller's.
            std::string suffix = result >= 0 && c.outputs.size() == 1 ? b.name.text : own.name;
            for (const ArrayId id : c.outputs) {
                const std::string& prefix = c.array(id).name;
                if (suffix.size() > prefix.size() + 1 && suffix.starts_with(prefix + "_"))
                    suffix = suffix.substr(prefix.size() + 1);
            }
            const bool typed = b.callee->typed[at(e.target)];
            image.id = add(unique_name(frame.base + "_" + suffix), std::move(axes),
                           typed ? std::optional(own.type) : std::nullopt, ArrayRole::temporary, frame.equation);
        }
        Array& array = d_.arrays[image.id];
        if (!out_.typed[at(image.id)]) {
            if (target >= 0 && b.callee->typed[at(e.target)] && array.role == ArrayRole::temporary) {
                array.type = own.type;
            } else if (array.role == ArrayRole::temporary) {
                array.type = infer_type(body);
            }
        }
        for (const AxisId a : array.axes) {
            const auto at = find(own_axes, a);
            image.dimensions.push_back(at == own_axes.end() ? -1 : static_cast<int>(at - own_axes.begin()));
        }
        images[at(e.target)] = image;
        Equation equation{image.id, e.reduce, std::move(reduce_axes), std::move(body), frame.equation, {b.name.text}};
        append(equation.inlined, e.inlined);
        add_equation(std::move(equation));
    }
    if (over_limit_) return {};

    // Sizes that the callee's text gives hold for the caller's axes that have none.
    for (const AxisId i : c.axes.ids()) {
        if (!c.axes[i].size || b.axes[i] < 0) continue;
        suggest_size(b.axes[i],
                     c.axes[i].size->renamed([&](Symbol symbol) { return axis_symbol(map_axis(b, symbol.axis())); }));
    }
    return mapped<ArrayId>(c.outputs, [&](ArrayId id) { return images[at(id)].id; });
}

/// A callee of scalars and maps becomes an expression: arguments and inner arrays stand where they are read, unless
/// they are large and read more than once.
Expr Elaborator::inline_elementwise(Binding& b, const Frame& frame) {
    const Diagram& c = b.callee->diagram;
    for (const Equation& e : c.equations) {
        if (!spend(count_nodes(e.body), b.range)) return constant(0);
    }
    std::map<ArrayId, Expr> values;
    std::map<ArrayId, std::size_t> uses;
    for (const Equation& e : c.equations) {
        for (const ArrayId id : read_arrays(e.body)) uses[id] += count_reads(e.body, id);
    }
    const auto fits = [&](ArrayId id, const Expr& e) {
        return is_simple(e) || (uses[id] <= 1 && depth_of(e) <= limits::max_nesting / 4);
    };
    for (std::size_t p = 0; p < c.inputs.size(); ++p) {
        const ArrayId id = c.inputs[p];
        Expr e = p < b.parameters.size() ? b.parameters[p].expr : constant(*b.callee->defaults[p]);
        if (!fits(id, e) && !(read_arrays(e).empty() && count_nodes(e) <= 8))
            e = stored_argument(b, p, std::move(e), {}, frame).expr;
        values[id] = std::move(e);
    }
    Expr result;
    for (const Equation& e : c.equations) {
        Expr body = transform(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r) return node;
            return value_or(values, r->array, node);
        });
        const bool is_result = e.target == c.outputs[0];
        if (is_result && uses[e.target] == 0) {
            result = std::move(body);
            continue;
        }
        if (!fits(e.target, body) || depth_of(body) > limits::max_nesting / 2) {
            Body inner;
            inner.expr = std::move(body);
            body = store(inner, frame, c.array(e.target).name);
        }
        if (is_result) result = body;
        values[e.target] = std::move(body);
    }
    visit(result, [&](const Expr& node) { check_coordinates(node, b.range); });
    if (depth_of(result) > limits::max_nesting / 2) {
        Body inner;
        inner.expr = std::move(result);
        result = store(inner, frame, b.name.text);
    }
    return result;
}

}  // namespace napkin
