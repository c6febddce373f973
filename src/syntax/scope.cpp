// A definition's names: axes, arrays, fresh ones, and the types of what has none in the text.
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "algebra/number.hpp"
#include "algebra/scalar_function.hpp"
#include "diagram/evaluate.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {

/// The type of a value while its parts are looked at: none yet for constants and coordinates.
struct Typed {
    std::optional<DType> type;
    bool fraction = false;  ///< holds a constant that no integer type can
};

Typed join(Typed a, Typed b) {
    Typed out{a.type ? a.type : b.type, a.fraction || b.fraction};
    if (a.type && b.type) out.type = promote(*a.type, *b.type);
    return out;
}

/// The result of a function whose values are no integers.
Typed to_float(Typed a) {
    if (a.type && !is_float(*a.type)) a.type = DType::f32;
    return a;
}

Typed type_of(const Expr& e, const Diagram& d) {
    std::unordered_map<const ExprNode*, Typed> types;  // parts of an expression may be shared
    const auto of = [&](const Expr& part) { return types.at(part.get()); };
    for_each_postorder(e, [&](const Expr& node) {
        Typed t;
        if (const auto* n = as<Constant>(node)) {
            t.fraction = n->value != std::floor(n->value) || std::isinf(n->value);
        } else if (const auto* r = as<Read>(node)) {
            t.type = d.array(r->array).type;
        } else if (const auto* c = as<Cast>(node)) {
            t.type = c->type;
        } else if (const auto* u = as<Unary>(node)) {
            t = scalar_function(u->op).is.of_integer == OfInteger::real ? to_float(of(u->a)) : of(u->a);
        } else if (const auto* b = as<Binary>(node)) {
            t = join(of(b->a), of(b->b));
            if (b->op == BinaryOp::div || b->op == BinaryOp::pow) t = to_float(t);
        } else if (const auto* s = as<Select>(node)) {
            t = join(of(s->a), of(s->b));
            if (!t.type) t = join(t, of(s->condition));
        }
        types[node.get()] = t;
    });
    return of(e);
}

}  // namespace

DType Elaborator::infer_type(const Expr& e) const {
    const Kind kind = kinds_of(d_)(e);
    if (kind == Kind::i32) return DType::i32;
    if (kind == Kind::i64) return DType::i64;
    Typed typed = type_of(e, d_);
    if (typed.fraction || kind == Kind::real) typed = to_float(typed);
    return typed.type.value_or(DType::f32);
}

void Elaborator::error(Code code, const SourceRange& range, std::string message, std::string expected, std::string hint) {
    diagnostics_.error(code, range, std::move(message), std::move(expected), std::move(hint));
}

void Elaborator::clash(const AstWord& name) {
    if (!clashes_.insert(name.text).second) return;
    error(Code::name_clash, name.range, fmt::format("{} is the name of an array and of an axis", name.text),
          "names that differ");
}

AxisId Elaborator::axis(const std::string& name) {
    const auto [at, added] = axes_.try_emplace(name, AxisId::of(d_.axes.size()));
    if (added) {
        d_.axes.push_back({name, std::nullopt, {}});
        taken_.insert(name);
    }
    return at->second;
}

std::string Elaborator::unique_name(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 2; taken_.contains(name) || is_builtin(name); ++i) name = fmt::format("{}_{}", wanted, i);
    taken_.insert(name);
    return name;
}

AxisId Elaborator::fresh_axis(const std::string& wanted) { return axis(unique_name(wanted)); }

ArrayId Elaborator::add(const std::string& name, std::vector<AxisId> axes, std::optional<DType> type, ArrayRole role,
                        SourceRange range) {
    const auto id = ArrayId::of(d_.arrays.size());
    if (axes.size() > limits::max_axes_per_array) {
        error(Code::too_many_axes, range, fmt::format("{} has {} axes", name, axes.size()),
              fmt::format("at most {}", limits::max_axes_per_array));
        axes.resize(limits::max_axes_per_array);
    }
    d_.arrays.push_back({name, std::move(axes), type.value_or(DType::f32), role, std::move(range)});
    out_.typed.push_back(type.has_value());
    return id;
}

/// Takes nodes out of the text's budget, or reports that it is used up.
bool Elaborator::spend(std::size_t nodes, const SourceRange& range) {
    std::size_t& left = library_.budget().nodes;
    if (left >= nodes) {
        left -= nodes;
        return true;
    }
    if (!over_limit_)
        error(Code::expression_too_large, range, "the text has too many operations once its calls are written out");
    over_limit_ = true;
    out_.ok = false;
    return false;
}

void Elaborator::add_equation(Equation e) {
    if (over_limit_) return;
    Budget& budget = library_.budget();
    const std::size_t nodes = count_nodes(e.body);
    if (nodes > limits::max_expr_nodes) {
        error(Code::expression_too_large, e.range,
              fmt::format("the equation of {} has {} operations", d_.array(e.target).name, nodes),
              fmt::format("at most {}", limits::max_expr_nodes), "name a part of it in an equation of its own");
        over_limit_ = true;
    } else if (d_.equations.size() >= limits::max_equations) {
        error(Code::too_many_equations, e.range,
              fmt::format("{} has too many equations once its calls are written out", d_.name),
              fmt::format("at most {}", limits::max_equations));
        over_limit_ = true;
    } else if (budget.equations == 0) {
        error(Code::too_many_equations, e.range, "the text has too many equations once its calls are written out");
        over_limit_ = true;
    } else if (!spend(nodes, e.range)) {
        return;
    } else if (d_.axes.size() > limits::max_axes) {
        error(Code::too_many_axes, e.range, fmt::format("{} has {} axes", d_.name, d_.axes.size()),
              fmt::format("at most {}", limits::max_axes));
        over_limit_ = true;
    }
    if (over_limit_) {
        out_.ok = false;
        return;
    }
    budget.equations -= 1;
    sort(e.reduce_axes);
    d_.equations.push_back(std::move(e));
}

std::string Elaborator::axis_list(const std::vector<AxisId>& axes) const {
    std::string out = "[";
    for (std::size_t i = 0; i < axes.size(); ++i) out += (i == 0 ? "" : ", ") + d_.axis(axes[i]).name;
    return out + "]";
}

std::string Elaborator::array_text(ArrayId id) const {
    const Array& a = d_.array(id);
    return a.axes.empty() ? a.name : a.name + axis_list(a.axes);
}

std::vector<std::string> Elaborator::array_names() const {
    std::vector<std::string> out;
    for (const auto& [name, known] : arrays_) out.push_back(name);
    return out;
}

std::vector<std::string> Elaborator::axis_names() const { return {axis_names_.begin(), axis_names_.end()}; }

}  // namespace napkin
