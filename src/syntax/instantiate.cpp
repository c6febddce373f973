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

/// A callee's equations on their way to the caller's diagram.
class Elaborator::Instance {
public:
    Instance(Elaborator& elaborator, Binding& binding, const Frame& frame, const std::vector<ArrayId>& targets)
        : e_(elaborator), b_(binding), c_(binding.callee->diagram), frame_(frame), targets_(targets) {
        images_.resize(c_.arrays.size());
        parameter_of_.assign(c_.arrays.size(), -1);
        result_of_.assign(c_.arrays.size(), -1);
        for (std::size_t p = 0; p < c_.inputs.size(); ++p) {
            parameter_of_[at(c_.inputs[p])] = static_cast<int>(p);
            if (p >= b_.parameters.size()) b_.parameters.push_back({constant(*b_.callee->defaults[p]), {}});
        }
        for (std::size_t r = 0; r < c_.outputs.size(); ++r) result_of_[at(c_.outputs[r])] = static_cast<int>(r);
    }

    std::vector<ArrayId> add() {
        const std::size_t before = e_.errors();
        std::vector<AxisId> own_images;
        for (const AxisId image : b_.axes)
            if (image >= 0) own_images.push_back(image);
        const Frame inner = frame_.inside(own_images);
        for (const Equation& e : c_.equations) {
            if (e_.over_limit_ || e_.errors() > before) return {};
            if (!e_.spend(count_nodes(e.body), b_.range)) return {};
            Expr body = body_of(e, inner);
            auto reduce_axes = mapped<AxisId>(e.reduce_axes, [&](AxisId a) { return e_.map_axis(b_, a); });
            if (!check(body, reduce_axes)) return {};
            visit(body, [&](const Expr& node) { e_.check_coordinates(node, b_.range); });
            if (e_.errors() > before) return {};
            const Image& image = images_[at(e.target)] = target_of(e.target, body);
            Equation equation{image.id,        e.reduce,        std::move(reduce_axes),
                              std::move(body), frame_.equation, {b_.name.text}};
            append(equation.inlined, e.inlined);
            e_.add_equation(std::move(equation));
        }
        if (e_.over_limit_) return {};
        suggest_sizes();
        return mapped<ArrayId>(c_.outputs, [&](ArrayId id) { return images_[at(id)].id; });
    }

private:
    /// The array that one of the callee becomes, and for each of that one's axes the callee's dimension, or -1: woven.
    struct Image {
        ArrayId id = -1;
        std::vector<int> dimensions;
    };

    /// Over the caller's axes and arrays.
    Expr mapped_expr(const Expr& e) {
        return transform(e, [&](const Expr& node) -> Expr {
            if (const auto* n = as<AxisIndex>(node)) return axis_index(e_.map_axis(b_, n->axis));
            if (const auto* n = as<AxisSize>(node)) return axis_size(e_.map_axis(b_, n->axis));
            const auto* r = as<Read>(node);
            if (!r) return node;
            // Those that are not affine are expressions below the read, and done.
            auto indices = mapped<Index>(r->indices, [&](const Index& index) {
                return index.affine() ? Index(e_.map_index(b_, *index.affine())) : index;
            });
            const int parameter = parameter_of_[at(r->array)];
            if (parameter >= 0) return e_.map_parameter(b_, b_.parameters[at(parameter)], indices);
            const Image& image = images_[at(r->array)];
            const Array& array = e_.d_.array(image.id);
            std::vector<Index> placed;
            for (std::size_t i = 0; i < array.axes.size(); ++i) {
                const int dimension = image.dimensions[i];
                placed.push_back(dimension < 0 ? Affine::axis(array.axes[i]) : indices[at(dimension)]);
            }
            return read(image.id, std::move(placed));
        });
    }

    Expr body_of(const Equation& e, const Frame& inner) {
        const Expr plain = mapped_expr(e.body);
        Expr body = e_.guarded(plain, inner);
        // What a guard depends on is woven too.
        if (body != plain)
            for (const AxisId a : free_axes(body))
                if (!contains(b_.axes, a)) b_.woven.insert(a);
        return body;
    }

    bool check(const Expr& body, const std::vector<AxisId>& reduce_axes) {
        if (depth_of(body) > limits::max_nesting) {
            e_.error(Code::nesting_too_deep, b_.range,
                     fmt::format("{} makes an expression that is nested too deep", b_.name.text),
                     fmt::format("at most {} operators and calls inside each other", limits::max_nesting));
            return false;
        }
        for (const AxisId a : reduce_axes) {
            if (depends_on_axis(body, a)) continue;
            const std::string& axis = e_.d_.axis(a).name;
            e_.error(Code::unused_reduction_axis, b_.range,
                     fmt::format("what {} reduces over {} does not depend on it here", b_.name.text, axis),
                     fmt::format("arguments that depend on {}", axis));
            return false;
        }
        return true;
    }

    /// What the callee's array becomes, whose equation has this body: the caller's target, or a new array.
    Image target_of(ArrayId id, const Expr& body) {
        const Array& own = c_.array(id);
        const bool typed = b_.callee->typed[at(id)];
        const auto own_axes = mapped<AxisId>(own.axes, [&](AxisId a) { return e_.map_axis(b_, a); });
        const int result = result_of_[at(id)];
        Image image{result >= 0 ? targets_[at(result)] : ArrayId(), {}};
        const bool given = image.id >= 0;
        if (!given) {
            std::vector<AxisId> axes = woven_axes(body);
            append(axes, own_axes);
            image.id = e_.add(e_.unique_name(frame_.base + "_" + suffix_of(id)), std::move(axes),
                              typed ? std::optional(own.type) : std::nullopt, ArrayRole::temporary, frame_.equation);
        }
        Array& array = e_.d_.arrays[image.id];
        if (!e_.out_.typed[at(image.id)] && array.role == ArrayRole::temporary)
            array.type = given && typed ? own.type : e_.infer_type(body);
        if (b_.callee->precise.contains(id) && array.role == ArrayRole::temporary && is_float(array.type))
            array.type = promote(array.type, DType::f32);
        for (const AxisId a : array.axes) {
            const auto at = find(own_axes, a);
            image.dimensions.push_back(at == own_axes.end() ? -1 : static_cast<int>(at - own_axes.begin()));
        }
        return image;
    }

    /// Axes of the body that the callee does not know: those around the call first.
    std::vector<AxisId> woven_axes(const Expr& body) const {
        const std::vector<AxisId> free = free_axes(body);
        std::vector<AxisId> axes;
        for (const AxisId a : frame_.bound) {
            if (b_.woven.contains(a) && contains(free, a)) axes.push_back(a);
        }
        for (const AxisId a : free) {
            if (b_.woven.contains(a) && !contains(axes, a)) axes.push_back(a);
        }
        return axes;
    }

    /// What the callee named after its result is named after the caller's.
    std::string suffix_of(ArrayId id) const {
        std::string suffix = result_of_[at(id)] >= 0 && c_.outputs.size() == 1 ? b_.name.text : c_.array(id).name;
        for (const ArrayId output : c_.outputs) {
            const std::string& prefix = c_.array(output).name;
            if (suffix.size() > prefix.size() + 1 && suffix.starts_with(prefix + "_"))
                suffix = suffix.substr(prefix.size() + 1);
        }
        return suffix;
    }

    /// Sizes that the callee's text gives hold for the caller's axes that have none.
    void suggest_sizes() {
        for (const AxisId i : c_.axes.ids()) {
            if (!c_.axes[i].size || b_.axes[i] < 0) continue;
            e_.suggest_size(b_.axes[i], c_.axes[i].size->renamed([&](Symbol symbol) {
                return axis_symbol(e_.map_axis(b_, symbol.axis()));
            }));
        }
    }

    Elaborator& e_;
    Binding& b_;
    const Diagram& c_;
    const Frame& frame_;
    const std::vector<ArrayId>& targets_;
    std::vector<Image> images_;                  ///< by array of the callee
    std::vector<int> parameter_of_, result_of_;  ///< likewise; -1: none
};

std::vector<ArrayId> Elaborator::instantiate(Binding& b, const Frame& frame, const std::vector<ArrayId>& targets) {
    return Instance(*this, b, frame, targets).add();
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
