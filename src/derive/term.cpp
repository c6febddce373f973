#include "derive/term.hpp"
#include "support/ranges.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <unordered_set>

namespace napkin {
namespace {

void collect_addends(const Expr& e, int sign, std::size_t limit, std::vector<Part>& out) {
    const auto* b = as<Binary>(e);
    if (out.size() < limit && b && (b->op == BinaryOp::add || b->op == BinaryOp::sub)) {
        collect_addends(b->a, sign, limit, out);
        return collect_addends(b->b, b->op == BinaryOp::sub ? -sign : sign, limit, out);
    }
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) return collect_addends(u->a, -sign, limit, out);
    out.push_back({sign, e});
}

void collect_factors(const Expr& e, int sign, std::size_t limit, std::vector<Part>& out) {
    const auto* b = as<Binary>(e);
    if (out.size() < limit && b && (b->op == BinaryOp::mul || b->op == BinaryOp::div)) {
        collect_factors(b->a, sign, limit, out);
        return collect_factors(b->b, b->op == BinaryOp::div ? -sign : sign, limit, out);
    }
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) {
        out.push_back({1, constant(-1)});
        return collect_factors(u->a, sign, limit, out);
    }
    out.push_back({sign, e});
}

bool is_nan(const Expr& e) {
    const auto* c = as<Constant>(e);
    return c && std::isnan(c->value);
}

}  // namespace

Expr times(const Expr& a, const Expr& b) {
    if (!a || !b) return a ? a : b;
    // A reciprocal behind a factor is a quotient.
    if (const auto* q = as<Binary>(b); q && q->op == BinaryOp::div)
        if (const auto* one = as<Constant>(q->a); one && one->value == 1) return over(a, q->b);
    return simplify(binary(BinaryOp::mul, a, b));
}
Expr over(const Expr& a, const Expr& b) { return b ? simplify(binary(BinaryOp::div, or_one(a), b)) : a; }
Expr plus(const Expr& a, const Expr& b) {
    if (!a || !b) return a ? a : b;
    return simplify(binary(BinaryOp::add, a, b));
}
Expr minus(const Expr& a, const Expr& b) {
    if (!b) return a;
    return a ? simplify(binary(BinaryOp::sub, a, b)) : negated(b);
}
Expr negated(const Expr& a) { return a ? simplify(unary(UnaryOp::neg, a)) : a; }

Expr masked(const Conditions& masks, const Expr& e) {
    return masks.empty() ? e : select(conjunction(masks), e, constant(0));
}
Expr exponential(const Expr& base, const Expr& e) {
    if (!base) return unary(UnaryOp::exp, e);
    const auto* number = as<Constant>(base);
    return number && number->value == 2 ? unary(UnaryOp::exp2, e) : binary(BinaryOp::pow, base, e);
}

std::vector<Part> addends(const Expr& e, std::size_t limit) {
    std::vector<Part> out;
    collect_addends(e, 1, limit, out);
    return out;
}
std::vector<Part> factors(const Expr& e, std::size_t limit) {
    std::vector<Part> out;
    collect_factors(e, 1, limit, out);
    return out;
}

Conditions lost(const Expr& before, const Expr& after, const Stream& stream) {
    Conditions out;
    const auto note = [&](const Expr& condition) {
        const auto same = [&](const Expr& c) { return equal(c, condition); };
        if (!stream.streams(condition) && none_of(out, same)) out.push_back(condition);
    };
    std::unordered_set<Expr, ExprHash, ExprEqual> kept;
    visit(after, [&](const Expr& node) { kept.insert(node); });
    const std::function<void(const Expr&)> search = [&](const Expr& part) {
        if (kept.contains(part) || stream.values(part).is_finite()) return;
        const auto* s = as<Select>(part);
        if (s && (is_nan(s->a) || is_nan(s->b))) {
            note(is_nan(s->a) ? s->condition : simplify(unary(UnaryOp::logical_not, s->condition)));
            for (const Part& inner : addends(is_nan(s->a) ? s->b : s->a)) search(inner.e);
            return;
        }
        if (kept.contains(where_defined(part))) {
            // What is lost is only what says where the part is undefined.
            return visit(part, [&](const Expr& node) {
                const auto* guard = as<Select>(node);
                if (guard && is_nan(guard->a)) note(guard->condition);
                if (guard && is_nan(guard->b)) note(simplify(unary(UnaryOp::logical_not, guard->condition)));
            });
        }
        note(unary(UnaryOp::logical_not,
                   binary(BinaryOp::lt, unary(UnaryOp::abs, part), constant(std::numeric_limits<double>::infinity()))));
    };
    for (const Part& part : addends(before)) search(part.e);
    return out;
}

Expr where_defined(const Expr& e) {
    return transform(e, [](const Expr& node) {
        const auto* s = as<Select>(node);
        if (s && is_nan(s->b)) return s->a;
        return s && is_nan(s->a) ? s->b : node;
    });
}

}  // namespace napkin
