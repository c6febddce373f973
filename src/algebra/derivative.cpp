#include "algebra/derivative.hpp"

#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "algebra/scalar_function.hpp"
#include "support/dtype.hpp"

namespace napkin {
namespace {

// Null is 0.
Expr sum(const Expr& a, const Expr& b) { return !a ? b : !b ? a : binary(BinaryOp::add, a, b); }
Expr negated(const Expr& a) { return a ? unary(UnaryOp::neg, a) : a; }
Expr times(const Expr& a, const Expr& b) { return a && b ? binary(BinaryOp::mul, a, b) : nullptr; }
Expr over(const Expr& a, const Expr& b) { return a ? binary(BinaryOp::div, a, b) : a; }
Expr either(const Expr& condition, const Expr& a, const Expr& b) {
    const auto value = [](const Expr& e) { return e ? e : constant(0); };
    return a || b ? select(condition, value(a), value(b)) : nullptr;
}

/// By the base a and the exponent b of y = a^b.
Expr of_power(const Expr& y, const Binary& n, const Expr& da, const Expr& db) {
    Expr out;
    if (da) {
        const Expr lower = simplify(binary(BinaryOp::sub, n.b, constant(1)));
        out = times(times(n.b, binary(BinaryOp::pow, n.a, lower)), da);
    }
    if (db) {
        const Expr slope = binary(BinaryOp::mul, y, unary(UnaryOp::log, n.a));
        out = sum(out, times(select(binary(BinaryOp::gt, n.a, constant(0)), slope, constant(0)), db));
    }
    return out;
}

Expr of_binary(const Expr& y, const Binary& n, const Expr& da, const Expr& db) {
    switch (n.op) {
        case BinaryOp::add: return sum(da, db);
        case BinaryOp::sub: return sum(da, negated(db));
        case BinaryOp::mul: return sum(times(da, n.b), times(n.a, db));
        case BinaryOp::div: return over(sum(da, negated(times(y, db))), n.b);
        case BinaryOp::mod: return sum(da, negated(times(binary(BinaryOp::floor_div, n.a, n.b), db)));
        case BinaryOp::pow: return of_power(y, n, da, db);
        case BinaryOp::max: return either(binary(BinaryOp::ge, n.a, n.b), da, db);
        case BinaryOp::min: return either(binary(BinaryOp::le, n.a, n.b), da, db);
        default: return nullptr;
    }
}

}  // namespace

Expr derivative(const Expr& e, const Expr& leaf) {
    std::unordered_map<const ExprNode*, Expr> of;
    for_each_postorder(
        e,
        [&](const Expr& node) {
            Expr& d = of[node.get()];
            const auto by = [&](const Expr& part) { return of.at(part.get()); };
            if (equal(node, leaf)) {
                d = constant(1);
            } else if (const auto* u = as<Unary>(node)) {
                if (const Expr inner = by(u->a)) d = times(scalar_function(u->op).slope(u->a, node), inner);
            } else if (const auto* b = as<Binary>(node)) {
                d = of_binary(node, *b, by(b->a), by(b->b));
            } else if (const auto* s = as<Select>(node)) {
                d = either(s->condition, by(s->a), by(s->b));
            } else if (const auto* c = as<Cast>(node)) {
                d = is_float(c->type) ? by(c->a) : nullptr;
            }
            if (d) d = simplify(d);
            if (d && as<Constant>(d) && as<Constant>(d)->value == 0) d = nullptr;
        },
        Walk::values);
    return of.at(e.get());
}

}  // namespace napkin
