#include "algebra/value_class.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "algebra/scalar_function.hpp"

namespace napkin {
namespace {

/// One number of each kind, in the order of the bits.
constexpr std::array representatives{-1.0, 0.0, 1.0, infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};

template <class F>
void for_each_kind(ValueClass set, F f) {
    for (std::size_t i = 0; i < representatives.size(); ++i)
        if (set.has(static_cast<ValueClass::Kind>(1U << i))) f(representatives[i]);
}

constexpr ValueClass truth{ValueClass::zero | ValueClass::positive};

/// The class for a finite argument: -1, 0 and 1 stand for all numbers of their sign.
ValueClass of_finite(UnaryOp op, double a) {
    const Image& image = scalar_function(op).is.image;
    return a < 0 ? image.of_negative : a > 0 ? image.of_positive : image.of_zero;
}

ValueClass of_finite(BinaryOp op, double a, double b) {
    switch (op) {
        case BinaryOp::add: return a * b < 0 ? ValueClass::finite() : value_class(a + b);
        case BinaryOp::sub: return a * b > 0 ? ValueClass::finite() : value_class(a - b);
        case BinaryOp::div:
        case BinaryOp::floor_div:
            return op == BinaryOp::div ? value_class(a / b) : value_class(a / b) | ValueClass(ValueClass::zero);
        case BinaryOp::mod:
            return (b == 0 ? ValueClass(ValueClass::undefined) : value_class(b)) | ValueClass(ValueClass::zero);
        case BinaryOp::pow:
            if (a > 0 || b == 0) return ValueClass(ValueClass::positive);
            if (a == 0) return ValueClass(b > 0 ? ValueClass::zero : ValueClass::infinite | ValueClass::minus_infinite);
            return ValueClass(ValueClass::negative | ValueClass::positive | ValueClass::undefined);
        default: return value_class(apply(op, a, b));
    }
}

bool is_truth(BinaryOp op) { return op >= BinaryOp::lt; }

ValueClass of_unary(UnaryOp op, ValueClass a) {
    if (gives_truth(op)) return truth;
    ValueClass out;
    for_each_kind(a, [&](double x) { out |= std::isfinite(x) ? of_finite(op, x) : value_class(apply(op, x)); });
    return out;
}

ValueClass of_binary(BinaryOp op, ValueClass a, ValueClass b) {
    if (is_truth(op)) return truth;
    if (op == BinaryOp::pow && !(a | b).is_finite()) return ValueClass::any();
    ValueClass out;
    for_each_kind(a, [&](double x) {
        for_each_kind(b, [&](double y) {
            const bool divides_by_zero = y == 0 && (op == BinaryOp::div || op == BinaryOp::floor_div);
            // The sign of a zero depends on how it came about. Integers by zero are 0.
            if (divides_by_zero)
                out |= (x == 0 || std::isnan(x) ? ValueClass(ValueClass::undefined)
                                                : ValueClass(ValueClass::infinite | ValueClass::minus_infinite)) |
                       (op == BinaryOp::div ? ValueClass() : ValueClass(ValueClass::zero));
            else
                out |= std::isfinite(x) && std::isfinite(y) ? of_finite(op, x, y) : value_class(apply(op, x, y));
        });
    });
    return out;
}

/// The power of a number by a whole one keeps or loses the sign by that one's parity.
ValueClass of_power(ValueClass a, const Expr& exponent, ValueClass of_exponent) {
    const auto* n = as<Constant>(exponent);
    if (!n || !std::isfinite(n->value) || n->value != std::floor(n->value) || n->value == 0)
        return of_binary(BinaryOp::pow, a, of_exponent);
    ValueClass out;
    for_each_kind(a, [&](double x) {
        out |= x == 0 && n->value < 0 ? ValueClass(ValueClass::infinite | ValueClass::minus_infinite)
                                      : value_class(std::pow(x, n->value));
    });
    return out;
}

/// The class of a value that stands where a comparison of itself with an infinity fails: where(x == inf, …, x),
/// where(abs(x) == inf, …, x).
ValueClass of_guarded(const Expr& condition, const Expr& e, ValueClass all) {
    const auto* test = as<Binary>(condition);
    const auto* bound = test && test->op == BinaryOp::eq ? as<Constant>(test->b) : nullptr;
    if (!bound || !std::isinf(bound->value)) return all;
    const auto* size = as<Unary>(test->a);
    unsigned excluded = 0;
    if (equal(test->a, e)) excluded = value_class(bound->value).bits();
    if (size && size->op == UnaryOp::abs && equal(size->a, e))
        excluded = ValueClass::infinite | ValueClass::minus_infinite;
    return ValueClass(all.bits() & ~excluded);
}

}  // namespace

ValueClass value_class(double value) {
    if (std::isnan(value)) return ValueClass(ValueClass::undefined);
    if (std::isinf(value)) return ValueClass(value > 0 ? ValueClass::infinite : ValueClass::minus_infinite);
    return ValueClass(value > 0 ? ValueClass::positive : value < 0 ? ValueClass::negative : ValueClass::zero);
}

ValueClass value_class(const Expr& e, const std::function<ValueClass(ArrayId)>& of_array) {
    std::unordered_map<const ExprNode*, ValueClass> known;
    const auto of = [&](const Expr& child) { return known.at(child.get()); };
    for_each_postorder(e, [&](const Expr& node) {
        ValueClass out = ValueClass::finite();
        if (const auto* c = as<Constant>(node)) {
            out = value_class(c->value);
        } else if (as<AxisSize>(node)) {
            out = ValueClass(ValueClass::positive);
        } else if (as<AxisIndex>(node)) {
            out = truth;
        } else if (const auto* r = as<Read>(node)) {
            out = of_array(r->array);
        } else if (const auto* u = as<Unary>(node)) {
            out = of_unary(u->op, of(u->a));
        } else if (const auto* b = as<Binary>(node)) {
            out = b->op == BinaryOp::pow ? of_power(of(b->a), b->b, of(b->b)) : of_binary(b->op, of(b->a), of(b->b));
            // A square is not negative.
            if (b->op == BinaryOp::mul && equal(b->a, b->b))
                out = ValueClass(out.bits() & ~static_cast<unsigned>(ValueClass::negative | ValueClass::minus_infinite));
        } else if (const auto* s = as<Select>(node)) {
            out = of_guarded(s->condition, s->b, of(s->b)) | of(s->a);
        } else if (const auto* to = as<Cast>(node)) {
            out = of(to->a);
            if (!is_float(to->type)) out = ValueClass::finite();
        }
        known[node.get()] = out;
    });
    return of(e);
}

ValueClass reduced(ReduceOp op, ValueClass terms) {
    switch (op) {
        case ReduceOp::sum: return terms | of_binary(BinaryOp::add, terms, terms);
        case ReduceOp::prod: {
            const ValueClass two = terms | of_binary(BinaryOp::mul, terms, terms);
            return two | of_binary(BinaryOp::mul, two, terms);
        }
        case ReduceOp::max:
        case ReduceOp::min: return terms;
    }
    return ValueClass::any();
}

}  // namespace napkin
