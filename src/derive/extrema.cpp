#include "derive/extrema.hpp"

#include <cmath>

#include "algebra/polynomial.hpp"
#include "algebra/scalar_function.hpp"
#include "derive/law.hpp"
#include "derive/separate.hpp"

namespace napkin {
namespace {

ReduceOp turned(ReduceOp op) { return op == ReduceOp::max ? ReduceOp::min : ReduceOp::max; }

class Peeling {
public:
    Peeling(const Stream& stream, Splitter& splitter) : stream_(stream), splitter_(splitter) {}

    std::optional<Peeled> peel(ReduceOp op, const Expr& e) {
        if (!stream_.runs(e)) return Peeled{op, e, {}, nullptr, true};
        if (!stream_.streams(e))
            return Peeled{op, constant(0), {}, [e](const Expr& acc) { return plus(acc, e); }, true};
        if (!as<Select>(e) && stream_.whole(e))
            return fail("integers wrap, so that an extremum does not pass through their operations", e);
        if (const auto* b = as<Binary>(e)) {
            switch (b->op) {
                case BinaryOp::add:
                case BinaryOp::sub: return sum(op, e);
                case BinaryOp::mul:
                case BinaryOp::div: return product(op, e);
                case BinaryOp::pow: return power(op, e, *b);
                case BinaryOp::max:
                case BinaryOp::min: return bounded(op, e, *b);
                default: return fail("it is not monotone in its part of the stream", e);
            }
        }
        if (const auto* u = as<Unary>(e)) {
            const std::optional<Order>& m = scalar_function(u->op).is.order;
            if (!m) return fail("it is not monotone in its part of the stream", e);
            if (m->domain == Order::Domain::not_negative && !stream_.not_negative(u->a))
                return fail("a function that is monotone where its argument is not negative needs a proof of that", u->a);
            return mapped(op, u->a, m->increasing, u->op == UnaryOp::neg,
                          [f = u->op](const Expr& acc) { return simplify(unary(f, acc)); });
        }
        if (const auto* c = as<Cast>(e); c && is_float(c->type))
            return mapped(op, c->a, true, true, [type = c->type](const Expr& acc) { return cast(type, acc); });
        if (const auto* s = as<Select>(e)) return choice(op, e, *s);
        return fail("it mixes the stream with a running result", e);
    }

private:
    const Stream& stream_;
    Splitter& splitter_;

    std::nullopt_t fail(const std::string& reason, const Expr& term) { return splitter_.fail(reason, term); }

    /// φ of the extremum of `inner`; `affine` where φ keeps infinities.
    template <class F>
    std::optional<Peeled> mapped(ReduceOp op, const Expr& inner, bool increasing, bool affine, F f) {
        splitter_.note(law(op, affine ? Action::add : Action::map).condition);
        auto out = peel(increasing ? op : turned(op), inner);
        if (!out) return std::nullopt;
        out->affine = out->affine && affine;
        out->finish = [before = out->finish, f](const Expr& acc) { return f(before ? before(acc) : acc); };
        return out;
    }

    std::optional<Peeled> sum(ReduceOp op, const Expr& e) {
        const FactorFailure before = splitter_.failure;
        if (const auto pair = splitter_.separate(e)) {
            if (const Expr early = part_met_early(e, stream_)) return fail(std::string(met_early), early);
            splitter_.note(law(op, Action::add).condition);
            return Peeled{op, or_zero(pair->a), {}, [b = pair->b](const Expr& acc) { return plus(acc, b); }, true};
        }
        splitter_.failure = before;
        Expr streamed, rest;
        int sign = 0;
        for (const auto& part : addends(e)) {
            if (stream_.streams(part.e)) {
                if (streamed) return fail("it is a sum of several parts of the stream that running results scale", e);
                streamed = part.e;
                sign = part.sign;
            } else {
                rest = part.sign > 0 ? plus(rest, part.e) : minus(rest, part.e);
            }
        }
        return mapped(op, streamed, sign > 0, true, [sign, rest](const Expr& acc) {
            return sign > 0 ? plus(acc, rest) : rest ? minus(rest, acc) : negated(acc);
        });
    }

    std::optional<Peeled> product(ReduceOp op, const Expr& e) {
        Expr streamed, mixed, above, below;
        bool mixed_below = false, negative = false;
        for (const auto& [sign, part] : factors(e)) {
            if (stream_.mixed(part)) {
                if (mixed || streamed) return fail("it multiplies several parts of the stream with running results", e);
                mixed = part;
                mixed_below = sign < 0;
            } else if (stream_.streams(part)) {
                if (mixed) return fail("it multiplies several parts of the stream with running results", e);
                streamed = sign > 0 ? times(streamed, part) : over(streamed, part);
            } else {
                Expr factor = part;
                if (const auto* c = as<Constant>(part); c && c->value < 0) {
                    negative = !negative;
                    factor = constant(-c->value);
                }
                const bool known = sign > 0 ? stream_.positive(factor) || stream_.not_negative(factor)
                                            : stream_.positive(factor);
                if (!known) return fail("a factor under max or min must be provably positive", part);
                (sign > 0 ? above : below) = times(sign > 0 ? above : below, factor);
            }
        }
        if (mixed_below && !stream_.positive(mixed))
            return fail("a denominator under max or min must be provably positive", mixed);
        // What loses against the extremum is out of sight, though it may be what the factor makes NaN.
        const Expr& reduced = mixed ? mixed : streamed;
        const auto may_be = [&](const Expr& part, unsigned kinds) {
            return part && (stream_.values(part).bits() & kinds) != 0;
        };
        constexpr unsigned infinite = ValueClass::infinite | ValueClass::minus_infinite;
        if (may_be(reduced, infinite) && (may_be(above, ValueClass::zero) || may_be(below, infinite)))
            return fail("a factor that may be 0 or infinite meets values that may be infinite", e);
        splitter_.note(law(op, Action::multiply).condition);
        const bool turns = negative != mixed_below;
        return mapped(op, mixed ? mixed : streamed, !turns, !mixed_below, [=](const Expr& acc) {
            const Expr scaled = mixed_below ? over(or_one(above), below ? times(below, acc) : acc)
                                            : over(times(acc, above), below);
            return negative ? negated(scaled) : scaled;
        });
    }

    std::optional<Peeled> power(ReduceOp op, const Expr& e, const Binary& b) {
        if (const auto* base = as<Constant>(b.a); base && base->value > 0) {
            return mapped(op, b.b, base->value >= 1, false,
                          [a = b.a](const Expr& acc) { return binary(BinaryOp::pow, a, acc); });
        }
        const auto* exponent = as<Constant>(b.b);
        if (!exponent) return fail("a power whose exponent is not a constant is not monotone", e);
        const double p = exponent->value;
        const bool odd = p > 0 && std::fmod(p, 2) == 1;
        const bool known = odd || (p > 0 ? stream_.not_negative(b.a) : stream_.positive(b.a));
        if (!known) return fail("a power is monotone where its base is not negative, which needs a proof", b.a);
        return mapped(op, b.a, p > 0, false, [n = b.b](const Expr& acc) { return binary(BinaryOp::pow, acc, n); });
    }

    /// max(f, ν) and min(f, ν) increase with f.
    std::optional<Peeled> bounded(ReduceOp op, const Expr& e, const Binary& b) {
        const bool first = stream_.streams(b.a);
        if (first && stream_.streams(b.b))
            return fail("both sides vary with the stream, and one with a running result", e);
        return mapped(op, first ? b.a : b.b, true, false,
                      [f = b.op, other = first ? b.b : b.a](const Expr& acc) { return simplify(binary(f, acc, other)); });
    }

    /// The greatest value of what only grows with its coordinates.
    static std::optional<Polynomial> greatest(const Expr& e) {
        if (const auto* x = as<AxisIndex>(e)) return polynomial(axis_size(x->axis)) + polynomial(constant(-1));
        if (as<AxisSize>(e)) return polynomial(e);
        if (const auto* c = as<Constant>(e); c && c->value >= 0) return polynomial(e);
        const auto* b = as<Binary>(e);
        if (!b || (b->op != BinaryOp::add && b->op != BinaryOp::mul)) return std::nullopt;
        const auto x = greatest(b->a), y = greatest(b->b);
        if (!x || !y) return std::nullopt;
        return b->op == BinaryOp::add ? *x + *y : *x * *y;
    }

    /// A value that is neutral beside f under ⊕: infinite, or beyond every place that f counts.
    [[nodiscard]] static bool neutral(ReduceOp op, const Expr& nothing, const Expr& f) {
        const auto* c = as<Constant>(nothing);
        if (c && c->value == identity(op)) return true;
        const auto most = greatest(f);
        if (!most || op != ReduceOp::min) return most && op == ReduceOp::max && c && c->value <= 0;
        const Polynomial beyond = polynomial(nothing) + -*most;
        return beyond.empty() || (beyond.size() == 1 && beyond[0].powers.empty() && beyond[0].coefficient >= 0);
    }

    std::optional<Peeled> choice(ReduceOp op, const Expr& e, const Select& s) {
        if (!stream_.streams(s.condition)) {
            // One side may vary with the stream; the other is the extremum of itself.
            const bool first = stream_.streams(s.a);
            if (first && stream_.streams(s.b)) return fail("both sides of a running condition vary with the stream", e);
            return mapped(op, first ? s.a : s.b, true, false, [first, s](const Expr& acc) {
                return first ? select(s.condition, acc, s.b) : select(s.condition, s.a, acc);
            });
        }
        if (stream_.runs(s.condition)) {
            Conditions of_stream;
            std::vector<Expr> selections;
            for (const auto& c : conjuncts(s.condition)) (stream_.runs(c) ? selections : of_stream).push_back(c);
            if (stream_.runs(s.a) || !neutral(op, s.b, s.a))
                return fail("the condition depends on a running result", s.condition);
            Peeled out{op, e, {}, nullptr, true};
            for (const auto& c : selections) {
                const auto found = splitter_.selected(c, s.b, of_stream);
                if (!found) return fail("the condition depends on a running result", c);
                out.selections.push_back(*found);
            }
            splitter_.note(law(op, Action::select).condition);
            return out;
        }
        // where(c, φ(A), ∓inf): the extremum of nothing stays what it is.
        const auto* other = as<Constant>(s.b);
        if (!other || other->value != identity(op))
            return fail("both sides of a condition vary, and one with a running result", e);
        auto out = peel(op, s.a);
        if (!out) return std::nullopt;
        if (!out->affine || !out->selections.empty())
            return fail("a masked side that is infinite is no value of the other side's function", e);
        out->core = select(s.condition, out->core, constant(identity(out->op)));
        if (!out->finish) return out;
        out->finish = [before = out->finish, op = out->op, whole = op](const Expr& acc) {
            return select(binary(BinaryOp::eq, acc, constant(identity(op))), constant(identity(whole)), before(acc));
        };
        return out;
    }
};

}  // namespace

std::optional<Peeled> peel(ReduceOp op, const Expr& body, const Stream& stream, Splitter& splitter) {
    return Peeling(stream, splitter).peel(op, body);
}

}  // namespace napkin
