#include "derive/dominance.hpp"

#include <cmath>

#include "algebra/polynomial.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
bool is_infinity(const Expr& e, double sign) {
    const auto* c = as<Constant>(e);
    return c && std::isinf(c->value) && c->value * sign > 0;
}

/// An expression with what masks it to an infinity taken off: where(c, a, -inf)·s + b is a·s + b wherever c holds.
struct Unmasked {
    Conditions masks;
    Expr core;
};

Unmasked unmasked(const Expr& e, double sign, const Stream& stream) {
    if (const auto* s = as<Select>(e)) {
        const bool first = is_infinity(s->b, sign);
        if (first || is_infinity(s->a, sign)) {
            Unmasked inner = unmasked(first ? s->a : s->b, sign, stream);
            for (const auto& c : conjuncts(first ? s->condition : simplify(unary(UnaryOp::logical_not, s->condition))))
                inner.masks.push_back(c);
            return inner;
        }
    }
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) {
        Unmasked inner = unmasked(u->a, -sign, stream);
        return {inner.masks, unary(UnaryOp::neg, inner.core)};
    }
    if (const auto* c = as<Cast>(e); c && is_float(c->type)) {
        Unmasked inner = unmasked(c->a, sign, stream);
        return {inner.masks, cast(c->type, inner.core)};
    }
    if (const auto* b = as<Binary>(e)) {
        const bool sum = b->op == BinaryOp::add || b->op == BinaryOp::sub;
        const bool product = b->op == BinaryOp::mul || b->op == BinaryOp::div;
        if (sum || product) {
            const bool left = sum || !stream.streams(b->b),
                       right = sum || (b->op == BinaryOp::mul && !stream.streams(b->a));
            if (product && !stream.positive(left ? b->b : b->a)) return {{}, e};
            Unmasked x = left ? unmasked(b->a, sign, stream) : Unmasked{{}, b->a};
            Unmasked y = right && !(product && left) ? unmasked(b->b, b->op == BinaryOp::sub ? -sign : sign, stream)
                                                     : Unmasked{{}, b->b};
            append(x.masks, y.masks);
            return {x.masks, binary(b->op, x.core, y.core)};
        }
    }
    return {{}, e};
}

/// −s·R or +s·R: the one running factor and the rest, of which the sign is a number's.
struct Scaled {
    Expr running;
    Expr scale;  ///< null: 1
    int sign = 1;
};
std::optional<Scaled> scaled(const Expr& e, const Stream& stream) {
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) {
        auto inner = scaled(u->a, stream);
        if (inner) inner->sign = -inner->sign;
        return inner;
    }
    if (const auto* b = as<Binary>(e); b && (b->op == BinaryOp::mul || b->op == BinaryOp::div)) {
        const bool left = stream.runs(b->a);
        const Expr& factor = left ? b->b : b->a;
        if ((!left && b->op == BinaryOp::div) || !stream.fixed(factor)) return std::nullopt;
        auto inner = scaled(left ? b->a : b->b, stream);
        if (!inner) return std::nullopt;
        const Expr one = inner->scale ? inner->scale : constant(1);
        Expr size = factor;
        if (const auto* c = as<Constant>(factor); c && c->value < 0) {
            inner->sign = -inner->sign;
            size = constant(-c->value);
        }
        inner->scale = simplify(binary(b->op, one, size));
        return inner;
    }
    return Scaled{e, nullptr, 1};
}

}  // namespace

Conditions conjuncts(const Expr& e) {
    const auto* b = as<Binary>(e);
    if (!b || b->op != BinaryOp::logical_and) return {e};
    Conditions out = conjuncts(b->a);
    for (const auto& c : conjuncts(b->b)) out.push_back(c);
    return out;
}

Expr conjunction(const Conditions& conditions) {
    Expr out;
    for (const auto& c : conditions) out = out ? binary(BinaryOp::logical_and, out, c) : c;
    return out;
}

std::optional<Extremum> extremum(const Expr& e, bool is_max, const Stream& stream) {
    const ReduceOp op = is_max ? ReduceOp::max : ReduceOp::min;
    const auto of_value = [&](const Expr& of) {
        const Expr empty = binary(BinaryOp::eq, e, constant(identity(op)));
        return Extremum{is_max, of, e, empty, select(empty, constant(0), e)};
    };
    if (const auto* r = as<Read>(e)) {
        const Equation* state = stream.running(r->array) ? stream.definition(r->array) : nullptr;
        if (!state || state->reduce != op) return std::nullopt;
        const auto reduced = [&](AxisId a) { return contains(state->reduce_axes, a); };
        if (!all_of(stream.axes, reduced)) return std::nullopt;
        return of_value(state->body);
    }
    if (const auto* b = as<Binary>(e); b && b->op == (is_max ? BinaryOp::max : BinaryOp::min)) {
        for (const auto& [side, other] : {std::pair{b->a, b->b}, std::pair{b->b, b->a}})
            if (const auto inner = extremum(side, is_max, stream); inner && stream.fixed(other))
                return of_value(inner->of);
    }
    if (const auto* s = as<Select>(e)) {
        // where(M == -inf, number, M): whatever stands in for an empty maximum, it meets nothing but exp(-inf). |M| ==
        // inf likewise.
        const auto* test = as<Binary>(s->condition);
        if (!test || (test->op != BinaryOp::eq && test->op != BinaryOp::ne)) return std::nullopt;
        const Expr& value = test->op == BinaryOp::eq ? s->b : s->a;
        const auto* number = as<Constant>(test->op == BinaryOp::eq ? s->a : s->b);
        const auto* size = as<Unary>(test->a);
        const bool either = size && size->op == UnaryOp::abs && equal(size->a, value) && is_infinity(test->b, 1);
        const bool empty = is_infinity(test->b, is_max ? -1 : 1) && equal(test->a, value);
        if ((!empty && !either) || !number || !std::isfinite(number->value)) return std::nullopt;
        auto inner = extremum(value, is_max, stream);
        if (!inner) return std::nullopt;
        inner->empty = nullptr;
        if (either) inner->guarded = e;
        return inner;
    }
    return std::nullopt;
}

bool covers(const Extremum& extremum, const Expr& a, const Conditions& masks, const Stream& stream) {
    if (equal(extremum.of, a)) return true;
    const double sign = extremum.is_max ? -1 : 1;
    const Unmasked of = unmasked(stream.written_out(extremum.of), sign, stream);
    Unmasked have = unmasked(stream.written_out(a), sign, stream);
    for (const auto& m : masks)
        for (const auto& c : conjuncts(stream.written_out(m))) have.masks.push_back(c);
    const auto holds = [&](const Expr& c) { return any_of(have.masks, [&](const Expr& m) { return equal(m, c); }); };
    return all_of(of.masks, holds) && equal_over_reals(of.core, have.core);
}

std::optional<Dominance> beside_extremum(const Expr& addend, int sign, const Expr& a, bool is_max,
                                         const Conditions& masks, const Stream& stream) {
    auto split = scaled(addend, stream);
    if (!split) return std::nullopt;
    sign *= split->sign;
    if (split->scale && !stream.positive(split->scale)) return std::nullopt;
    auto found = extremum(split->running, is_max, stream);
    if (!found) return std::nullopt;
    Extremum of = *found;  // of a: s·A, or −s·A, whose maximum is where A has its minimum
    of.is_max = is_max == (sign < 0);
    of.of = stream.written_out(found->of);
    if (split->scale) of.of = simplify(binary(BinaryOp::mul, of.of, split->scale));
    if (sign > 0) of.of = simplify(unary(UnaryOp::neg, of.of));
    if (!covers(of, a, masks, stream)) return std::nullopt;
    return Dominance{*found, split->scale, sign};
}

std::optional<Dominance> extremum_of(const Expr& addend, int sign, const Expr& a, const Conditions& masks,
                                     const Stream& stream) {
    auto found = beside_extremum(addend, sign, a, true, masks, stream);
    return found ? found : beside_extremum(addend, sign, a, false, masks, stream);
}

bool is_extremum(const Expr& addend, const Stream& stream) {
    const auto split = scaled(addend, stream);
    return split && (extremum(split->running, true, stream) || extremum(split->running, false, stream));
}

bool follows_extremum(const Expr& e, const Stream& stream) {
    if (const auto* r = as<Read>(e)) {
        const Equation* defined = stream.definition(r->array);
        if (!defined) return false;
        if (!defined->reduce) return follows_extremum(defined->body, stream);
        return defined->reduce == ReduceOp::max || defined->reduce == ReduceOp::min;
    }
    if (const auto* s = as<Select>(e)) return follows_extremum(s->a, stream) || follows_extremum(s->b, stream);
    if (const auto* c = as<Cast>(e)) return follows_extremum(c->a, stream);
    if (const auto* u = as<Unary>(e)) return u->op == UnaryOp::neg && follows_extremum(u->a, stream);
    if (const auto* b = as<Binary>(e)) return follows_extremum(b->a, stream) || follows_extremum(b->b, stream);
    return false;
}

std::optional<Dominance> dominance(const Expr& addend, int sign, const Expr& a, const Conditions& masks,
                                   const Stream& stream) {
    for (const bool is_max : {true, false}) {
        const auto found = beside_extremum(addend, sign, a, is_max, masks, stream);
        if (found && is_max == (found->sign < 0)) return found;
    }
    return std::nullopt;
}

}  // namespace napkin
