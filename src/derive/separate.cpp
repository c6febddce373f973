#include "derive/separate.hpp"

#include <cmath>

#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

std::nullopt_t Separator::fail(const std::string& reason, const Expr& term) {
    failure_ = {reason, term};
    return std::nullopt;
}

std::optional<Shifted> Separator::separate(const Expr& e) {
    if (const auto hit = separated_.find(e); hit != separated_.end()) {
        if (!hit->second.first) failure_ = hit->second.second;
        return hit->second.first;
    }
    auto out = compute_separate(e);
    separated_.emplace(e, std::pair{out, out ? FactorFailure{} : failure_});
    return out;
}

std::optional<Shifted> Separator::compute_separate(const Expr& e) {
    if (!stream_.runs(e) && stream_.streams(e)) return Shifted{e, nullptr};
    if (!stream_.streams(e)) return Shifted{nullptr, e};
    if (const auto* b = as<Binary>(e)) {
        if (b->op == BinaryOp::add || b->op == BinaryOp::sub) {
            const auto x = separate(b->a);
            const auto y = x ? separate(b->b) : std::nullopt;
            if (!x || !y) return std::nullopt;
            if (b->op == BinaryOp::sub) return Shifted{minus(x->a, y->a), minus(x->b, y->b)};
            return Shifted{plus(x->a, y->a), plus(x->b, y->b)};
        }
        if (b->op == BinaryOp::mul || b->op == BinaryOp::div) return separate_product(e, *b);
    }
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) {
        const auto inner = separate(u->a);
        if (!inner) return std::nullopt;
        return Shifted{negated(inner->a), negated(inner->b)};
    }
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::log) return separate_log(u->a);
    if (const auto* s = as<Select>(e); s && !stream_.runs(s->condition)) {
        // A masked side is absorbing: where(c, a + b, -inf) = where(c, a, -inf) + b.
        const auto infinite = [](const Expr& side) {
            const auto* c = as<Constant>(side);
            return c && std::isinf(c->value);
        };
        const bool first = infinite(s->b);
        if (first || infinite(s->a)) {
            const auto inner = separate(first ? s->a : s->b);
            if (!inner) return std::nullopt;
            // Outside of the choice NaN would count where the masked side is taken.
            if (inner->b && stream_.values(inner->b).has(ValueClass::undefined))
                return fail("a running result that may be NaN stands in one side of a choice", inner->b);
            const Expr a = or_zero(inner->a);
            return Shifted{first ? select(s->condition, a, s->b) : select(s->condition, s->a, a), inner->b};
        }
    }
    if (const auto* c = as<Cast>(e); c && is_float(c->type)) {
        // What is computed has no more digits than f32 but in f64.
        if (epsilon(c->type) > epsilon(DType::f32))
            return fail("a cast of a sum of stream and running result does not distribute", e);
        return separate(c->a);
    }
    return fail("it is not a sum of a part of the stream and a part of the running results", e);
}

/// (A + B)·c = A·c + B·c where c neither streams nor runs.
std::optional<Shifted> Separator::separate_product(const Expr& e, const Binary& b) {
    const bool left = b.op == BinaryOp::mul && stream_.fixed(b.a);
    const Expr& factor = left ? b.a : b.b;
    if (!stream_.fixed(factor))
        return fail("it is not a sum of a part of the stream and a part of the running results", e);
    const auto inner = separate(left ? b.b : b.a);
    if (!inner) return std::nullopt;
    const auto scale = [&](const Expr& p) {
        return p ? simplify(binary(b.op, left ? factor : p, left ? p : factor)) : p;
    };
    return Shifted{scale(inner->a), scale(inner->b)};
}

/// log(a·b) = log a + log b where the factor without the stream is provably positive.
std::optional<Shifted> Separator::separate_log(const Expr& e) {
    const Expr logarithm = unary(UnaryOp::log, e);
    if (stream_.streams(e) && !stream_.runs(e)) return Shifted{logarithm, nullptr};
    if (!stream_.streams(e)) {
        if (stream_.positive(e)) return Shifted{nullptr, logarithm};
        return fail("the logarithm of a product needs a running factor that is provably positive", e);
    }
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::exp) return separate(u->a);
    const auto* b = as<Binary>(e);
    if (b && (b->op == BinaryOp::mul || b->op == BinaryOp::div)) {
        const auto x = separate_log(b->a);
        const auto y = x ? separate_log(b->b) : std::nullopt;
        if (!x || !y) return std::nullopt;
        if (b->op == BinaryOp::div) return Shifted{minus(x->a, y->a), minus(x->b, y->b)};
        return Shifted{plus(x->a, y->a), plus(x->b, y->b)};
    }
    if (const auto* c = b && b->op == BinaryOp::pow ? as<Constant>(b->b) : nullptr) {
        const auto inner = separate_log(b->a);
        if (!inner) return std::nullopt;
        const auto scale = [&](const Expr& p) { return p ? times(constant(c->value), p) : p; };
        return Shifted{scale(inner->a), scale(inner->b)};
    }
    return fail("the logarithm is not of a product of positive factors", logarithm);
}

namespace {

bool is_sum(const Binary& b) { return b.op == BinaryOp::add || b.op == BinaryOp::sub; }

/// No operation rounds it: what is read from memory, by way of choices, signs and extrema.
bool is_exact(const Expr& e, const Stream& stream) {
    if (const auto* r = as<Read>(e)) {
        const Equation* defined = stream.definition(r->array);
        return !defined ||
               (defined->reduce != ReduceOp::sum && defined->reduce != ReduceOp::prod && is_exact(defined->body, stream));
    }
    if (const auto* s = as<Select>(e)) return is_exact(s->a, stream) && is_exact(s->b, stream);
    if (const auto* u = as<Unary>(e); u && u->op != UnaryOp::neg && u->op != UnaryOp::abs && u->op != UnaryOp::floor)
        return false;
    if (const auto* b = as<Binary>(e); b && b->op != BinaryOp::max && b->op != BinaryOp::min) return false;
    const std::vector<Expr> parts = children(e);
    return all_of(parts, [&](const Expr& part) { return is_exact(part, stream); });
}

/// A sum in e of an exact part of the stream and what runs; null: there is none.
Expr exact_and_running(const Expr& e, const Stream& stream) {
    if (!stream.mixed(e)) return nullptr;
    if (const auto* b = as<Binary>(e); b && is_sum(*b))
        for (const auto& [part, rest] : {std::pair(b->a, b->b), std::pair(b->b, b->a)})
            if (!stream.runs(part) && !stream.streams(rest) && is_exact(part, stream)) return e;
    for (const Expr& child : children(e))
        if (Expr early = exact_and_running(child, stream)) return early;
    return nullptr;
}

}  // namespace

Expr part_met_early(const Expr& e, const Stream& stream) {
    if (!stream.mixed(e)) return nullptr;
    const auto* b = as<Binary>(e);
    const bool joins = b && is_sum(*b) && stream.streams(b->a) && stream.streams(b->b);
    for (const Expr& child : children(e))
        if (Expr early = joins ? exact_and_running(child, stream) : part_met_early(child, stream)) return early;
    return nullptr;
}

}  // namespace napkin
