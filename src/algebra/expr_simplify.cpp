// Simplification and the sign of expressions: rules that hold over the reals, one line each.
#include <cmath>
#include <limits>
#include <unordered_map>

#include "algebra/expr.hpp"
#include "algebra/expr_walk.hpp"
#include "algebra/number.hpp"
#include "algebra/scalar_function.hpp"

namespace napkin {
namespace {

bool is_constant(const Expr& e, double value) {
    const auto* c = as<Constant>(e);
    return c && c->value == value;
}
const Unary* as_unary(const Expr& e, UnaryOp op) {
    const auto* n = as<Unary>(e);
    return n && n->op == op ? n : nullptr;
}
const Binary* as_binary(const Expr& e, BinaryOp op) {
    const auto* n = as<Binary>(e);
    return n && n->op == op ? n : nullptr;
}

/// Always 0 or 1.
bool is_boolean(const Expr& e) {
    if (const auto* n = as<Binary>(e)) {
        return is_comparison(n->op) || n->op == BinaryOp::logical_and || n->op == BinaryOp::logical_or;
    }
    if (const auto* n = as<Unary>(e)) return gives_truth(n->op);
    return is_constant(e, 0) || is_constant(e, 1);
}

/// Finite at every point: what is made of coordinates and sizes alone.
bool is_coordinate(const Expr& e) {
    if (const auto* c = as<Constant>(e)) return std::isfinite(c->value);
    return as<AxisIndex>(e) || as<AxisSize>(e);
}

Expr as_constant(const Number& n) {
    return n.kind() == Kind::real ? constant(n.as_real()) : integer_constant(n.as_whole(Kind::i64));
}

/// Whatever the types of the arrays that it reads: an identity must not make a real number into an integer, which
/// wraps.
bool is_surely_real(const Expr& e) {
    if (const auto* c = as<Constant>(e)) return kind_of(*c) == Kind::real;
    if (const auto* c = as<Cast>(e)) return is_float(c->type);
    if (const auto* u = as<Unary>(e)) return kind_of(u->op, Kind::whole) == Kind::real;
    const auto* b = as<Binary>(e);
    return b && b->op == BinaryOp::div;
}

/// An integer that beside a real number is one.
bool is_made_of_coordinates(const Expr& e) { return !as<Constant>(e) && !is_surely_real(e) && read_arrays(e).empty(); }

Expr simplify_unary(const Expr& e, const Unary& n) {
    if (const auto* c = as<Constant>(n.a)) return as_constant(apply(n.op, number_of(*c)));
    const auto* of = as<Unary>(n.a);
    if (of && scalar_function(n.op).is.inverse == of->op) return of->a;
    if (gives_integer(n.op) && ((of && gives_integer(of->op)) || is_boolean(n.a) || as<AxisIndex>(n.a) || as<AxisSize>(n.a)))
        return n.a;
    switch (n.op) {
        case UnaryOp::neg:
            if (const auto* inner = as_binary(n.a, BinaryOp::sub)) return binary(BinaryOp::sub, inner->b, inner->a);
            break;
        case UnaryOp::abs:
            if (const auto* inner = as_unary(n.a, UnaryOp::neg)) return unary(UnaryOp::abs, inner->a);
            if (as_unary(n.a, UnaryOp::abs) || is_boolean(n.a)) return n.a;
            break;
        case UnaryOp::logical_not:
            if (const auto* inner = as_unary(n.a, UnaryOp::logical_not); inner && is_boolean(inner->a)) return inner->a;
            break;
        default: break;
    }
    return e;
}

/// x + y: also of signs, so that a sum never holds a negation that a difference can say.
Expr simplify_sum(const Expr& e, const Binary& n) {
    if (is_constant(n.a, 0)) return n.b;
    if (is_constant(n.b, 0)) return n.a;
    if (const auto* right = as_unary(n.b, UnaryOp::neg)) {
        return binary(BinaryOp::sub, n.a, right->a);
    }
    if (const auto* left = as_unary(n.a, UnaryOp::neg)) {
        return binary(BinaryOp::sub, n.b, left->a);
    }
    return e;
}

Expr simplify_difference(const Expr& e, const Binary& n) {
    if (is_constant(n.b, 0)) return n.a;
    // Not for any value: an infinity less itself is NaN.
    if (equal(n.a, n.b) && is_coordinate(n.a)) return constant(0);
    if (is_constant(n.a, 0)) return unary(UnaryOp::neg, n.b);
    if (const auto* right = as_unary(n.b, UnaryOp::neg)) return binary(BinaryOp::add, n.a, right->a);
    return e;
}

Expr simplify_product(const Expr& e, const Binary& n) {
    if (is_constant(n.a, 1)) return n.b;
    if (is_constant(n.b, 1)) return n.a;
    // Not for any factor: what is infinite or NaN times zero is NaN, and a user looks for it.
    if ((is_constant(n.a, 0) && is_coordinate(n.b)) || (is_constant(n.b, 0) && is_coordinate(n.a))) return constant(0);
    if (is_constant(n.a, -1)) return unary(UnaryOp::neg, n.b);
    if (is_constant(n.b, -1)) return unary(UnaryOp::neg, n.a);
    const auto* left = as_unary(n.a, UnaryOp::neg);
    const auto* right = as_unary(n.b, UnaryOp::neg);
    if (left && right) return binary(BinaryOp::mul, left->a, right->a);
    return e;
}

Expr simplify_quotient(const Expr& e, const Binary& n) {
    if (is_constant(n.b, 1)) return n.a;
    if (is_constant(n.b, -1)) return unary(UnaryOp::neg, n.a);
    // Not for any value: 0/0 and the quotient of infinities are NaN.
    if (equal(n.a, n.b) && as<AxisSize>(n.a)) return constant(1);
    const auto* left = as_unary(n.a, UnaryOp::neg);
    const auto* right = as_unary(n.b, UnaryOp::neg);
    if (left && right) return binary(BinaryOp::div, left->a, right->a);
    return e;
}

Expr simplify_comparison(const Expr& e, const Binary& n) {
    if (n.op == BinaryOp::ne && is_constant(n.b, 0) && is_boolean(n.a)) return n.a;
    // Only of coordinates: a NaN is not equal to itself.
    if (!is_coordinate(n.a) || !equal(n.a, n.b)) return e;
    return constant(apply(n.op, 0, 0));
}

Expr simplify_logic(const Expr& e, const Binary& n) {
    const double absorbing = n.op == BinaryOp::logical_and ? 0 : 1;
    for (const auto& [side, other] : {std::pair{&n.a, &n.b}, std::pair{&n.b, &n.a}}) {
        const auto* c = as<Constant>(*side);
        if (!c) continue;
        if ((c->value != 0) == (absorbing != 0)) return constant(absorbing);
        if (is_boolean(*other)) return *other;
    }
    if (equal(n.a, n.b) && is_boolean(n.a)) return n.a;
    return e;
}

Expr simplify_binary(const Expr& e, const Binary& n) {
    const auto* left = as<Constant>(n.a);
    const auto* right = as<Constant>(n.b);
    if (left && right) {
        const Number a = number_of(*left), b = number_of(*right);
        return as_constant(apply(n.op, kind_of(n.op, a.kind(), b.kind(), n.b), a, b));
    }
    switch (n.op) {
        case BinaryOp::add: return simplify_sum(e, n);
        case BinaryOp::sub: return simplify_difference(e, n);
        case BinaryOp::mul: return simplify_product(e, n);
        case BinaryOp::div: return simplify_quotient(e, n);
        case BinaryOp::pow:
            if (is_constant(n.b, 1)) return n.a;
            if (is_constant(n.b, 0) || is_constant(n.a, 1)) return constant(1);
            return e;
        case BinaryOp::min:
        case BinaryOp::max: {
            const double neutral = n.op == BinaryOp::min ? infinity : -infinity;
            if (equal(n.a, n.b) || is_constant(n.b, neutral)) return n.a;
            return is_constant(n.a, neutral) ? n.b : e;
        }
        case BinaryOp::floor_div:
        case BinaryOp::mod: return e;
        case BinaryOp::logical_and:
        case BinaryOp::logical_or: return simplify_logic(e, n);
        default: return simplify_comparison(e, n);
    }
}

Expr simplify_node(const Expr& e) {
    if (const auto* n = as<Unary>(e)) return simplify_unary(e, *n);
    if (const auto* n = as<Binary>(e)) return simplify_binary(e, *n);
    if (const auto* n = as<Select>(e)) {
        if (const auto* c = as<Constant>(n->condition)) {
            const Expr& taken = c->value != 0 ? n->a : n->b;
            const Expr& other = c->value != 0 ? n->b : n->a;
            return is_made_of_coordinates(taken) && !is_made_of_coordinates(other) ? e : taken;
        }
        if (equal(n->a, n->b)) return n->a;
    }
    if (const auto* n = as<Cast>(e)) {
        const auto* inner = as<Cast>(n->a);
        if ((n->type == DType::f64 && is_surely_real(n->a)) || (inner && inner->type == n->type)) return n->a;
        if (const auto* c = as<Constant>(n->a); c && !is_float(n->type))
            return integer_constant(number_of(*c).to(n->type).as_whole(Kind::i64));
        if (const auto* c = as<Constant>(n->a); c && is_surely_real(n->a) && round_to(n->type, c->value) == c->value)
            return n->a;
    }
    return e;
}

struct Sign {
    bool positive = false;
    bool not_negative = false;
};
constexpr Sign above{true, true};
constexpr Sign at_least_zero{false, true};

Sign sign_of_unary(const Unary& n, Sign a) {
    const Image& image = scalar_function(n.op).is.image;
    ValueClass out = image.of_positive;
    if (!a.positive) out |= image.of_zero;
    if (!a.not_negative) out |= image.of_negative;
    const bool is_below = out.has(ValueClass::negative) || out.has(ValueClass::minus_infinite);
    return {out == ValueClass(ValueClass::positive), !is_below};
}

Sign sign_of_binary(const Binary& n, Sign a, Sign b) {
    switch (n.op) {
        case BinaryOp::add:
            return {(a.positive && b.not_negative) || (a.not_negative && b.positive), a.not_negative && b.not_negative};
        case BinaryOp::mul: return {a.positive && b.positive, (a.not_negative && b.not_negative) || equal(n.a, n.b)};
        case BinaryOp::div: return {a.positive && b.positive, a.not_negative && b.positive};
        case BinaryOp::pow: {
            const auto* exponent = as<Constant>(n.b);
            const bool even = exponent && exponent->value >= 0 && std::fmod(exponent->value, 2) == 0;
            return {a.positive, a.positive || even || a.not_negative};
        }
        case BinaryOp::min: return {a.positive && b.positive, a.not_negative && b.not_negative};
        case BinaryOp::max: return {a.positive || b.positive, a.not_negative || b.not_negative};
        case BinaryOp::sub: return {};
        case BinaryOp::floor_div: return {false, a.not_negative && b.positive};
        case BinaryOp::mod: return {false, b.positive};
        default: return at_least_zero;  // comparisons and logic
    }
}

Sign sign_of(const Expr& e) {
    std::unordered_map<const ExprNode*, Sign> signs;
    const auto sign = [&](const Expr& child) { return signs.at(child.get()); };
    for_each_postorder(e, [&](const Expr& node) {
        Sign s;
        if (const auto* number = as<Constant>(node)) {
            s = {number->value > 0, number->value >= 0};
        } else if (as<AxisSize>(node)) {
            s = above;
        } else if (as<AxisIndex>(node)) {
            s = at_least_zero;
        } else if (const auto* u = as<Unary>(node)) {
            s = sign_of_unary(*u, sign(u->a));
        } else if (const auto* b = as<Binary>(node)) {
            s = sign_of_binary(*b, sign(b->a), sign(b->b));
        } else if (const auto* choice = as<Select>(node)) {
            const Sign yes = sign(choice->a), no = sign(choice->b);
            s = {yes.positive && no.positive, yes.not_negative && no.not_negative};
        } else if (const auto* c = as<Cast>(node)) {
            // Rounding to a narrow range may turn a small positive value into zero.
            const bool keeps_range = is_float(c->type) && facts(c->type).min_exponent <= facts(DType::f32).min_exponent;
            s = {keeps_range && sign(c->a).positive, sign(c->a).not_negative};
        }
        signs[node.get()] = s;
    });
    return sign(e);
}

}  // namespace

Expr simplify(const Expr& e) {
    // A rule's result stands over simplified children, so only its top can be simplified further. Every rule shrinks
    // the tree or removes a negation: the inner loop ends.
    return transform(e, [](const Expr& node) {
        Expr current = node;
        for (Expr next = simplify_node(current); next != current; next = simplify_node(current)) current = next;
        return current;
    });
}

bool is_positive(const Expr& e) { return sign_of(e).positive; }
bool is_not_negative(const Expr& e) { return sign_of(e).not_negative; }

}  // namespace napkin
