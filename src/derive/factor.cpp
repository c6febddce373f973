#include "derive/factor.hpp"

#include <cmath>
#include <limits>

#include "derive/centre.hpp"
#include "derive/extrema.hpp"
#include "derive/law.hpp"
#include "derive/moments.hpp"
#include "derive/split.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool same(const Expr& a, const Expr& b) { return a && b ? equal(a, b) : !a && !b; }

/// where(condition, nan, z), or null.
Expr guarded_value(const Expr& e, const Expr& condition) {
    const auto* s = as<Select>(e);
    const auto* c = s ? as<Constant>(s->a) : nullptr;
    return c && std::isnan(c->value) && equal(s->condition, condition) ? s->b : nullptr;
}

/// NaN wherever the condition holds, through operations that hand a NaN on.
bool is_undefined_where(const Expr& e, const Expr& condition) {
    if (guarded_value(e, condition)) return true;
    if (const auto* u = as<Unary>(e)) return u->op != UnaryOp::logical_not && is_undefined_where(u->a, condition);
    if (const auto* c = as<Cast>(e)) return is_undefined_where(c->a, condition);
    const auto* b = as<Binary>(e);
    return b && b->op <= BinaryOp::max && (is_undefined_where(b->a, condition) || is_undefined_where(b->b, condition));
}

bool is_state_times_fixed(const Expr& e, const Stream& stream) {
    const auto parts = factors(e);
    return all_of(parts, [&](const Part& p) { return as<Read>(p.e) || stream.fixed(p.e); });
}

/// What is accumulated is 0 where the condition holds, the definition NaN. A tail that is undefined there says so
/// itself; so does 0/0, if the denominator is a state of the same reference: then it needs no guard either.
void settle_undefined(Term& t, const Stream& stream) {
    std::erase_if(t.undefined, [&](const Expr& condition) {
        // A tail under a mask does not count beside a value of 0.
        if (!t.tail || t.masked_tail) return false;
        bool denominator = false;
        std::vector<Part> parts;
        for (const auto& [sign, part] : factors(t.tail)) {
            const Expr z = sign < 0 ? guarded_value(part, condition) : nullptr;
            if (!z || !is_state_times_fixed(z, stream)) {
                parts.push_back({sign, part});
                continue;
            }
            denominator = true;
            for (const auto& [inner, f] : factors(z)) {
                // What both carry cancels.
                const auto other = find_if(parts, [&, s = inner * sign, &factor = f](const Part& p) {
                    return p.sign != s && equal(p.e, factor);
                });
                if (other != parts.end()) {
                    parts.erase(other);
                } else {
                    parts.push_back({inner * sign, f});
                }
            }
        }
        if (!denominator) return is_undefined_where(t.tail, condition);
        t.tail = nullptr;
        for (const auto& [sign, part] : parts) t.tail = sign > 0 ? times(t.tail, part) : over(t.tail, part);
        return true;
    });
}

class SumFactoring {
public:
    SumFactoring(ReduceOp op, const Stream& stream, const FactorOptions& options, Splitter& splitter)
        : op_(op), stream_(stream), options_(options), splitter_(splitter) {}

    std::variant<Factored, FactorFailure> run(Terms terms) {
        Factored out;
        for (auto& t : terms) {
            settle_undefined(t, stream_);
            if (overflows(t)) {
                out.to_lower = t.references[0].value;
                return out;
            }
        }
        if (terms.size() == 1) {
            if (op_ == ReduceOp::sum && options_.keep_tails) keep_reciprocal(terms[0]);
            const Term& t = terms[0];
            if (!t.tail && t.shifted.empty() && t.guards.empty() && t.undefined.empty()) {
                out.plain = state_of(t);
                out.conditions = splitter_.conditions;
                return out;
            }
        }
        for (auto& t : terms) {
            const Expr value = value_of(t);
            if (!value) return failure_;
            out.finish = out.finish ? simplify(binary(BinaryOp::add, out.finish, value)) : value;
        }
        if (!out.finish) out.finish = constant(identity(op_));
        out.conditions = splitter_.conditions;
        out.conditions.insert(out.conditions.begin(), std::string(law(op_, tail_action()).condition));
        return out;
    }

private:
    ReduceOp op_;
    const Stream& stream_;
    const FactorOptions& options_;
    Splitter& splitter_;
    Expr kept_;
    FactorFailure failure_;

    [[nodiscard]] Action tail_action() const { return op_ == ReduceOp::prod ? Action::raise : Action::multiply; }

    /// A weighted mean whose division waits: a sum of n weights up to 1 can be n times what the mean is. With weights
    /// up to 1/n it is not.
    [[nodiscard]] bool overflows(const Term& t) const {
        if (op_ != ReduceOp::sum || options_.keep_tails || !t.tail || !t.body || t.references.size() != 1) return false;
        const Expr& reference = t.references[0].value;
        if (options_.lowered(reference)) return false;
        const auto sums_weights = [&](ArrayId id) {
            const Equation* sum = stream_.running(id) ? stream_.definition(id) : nullptr;
            if (!sum || sum->reduce != ReduceOp::sum) return false;
            const auto reads = read_arrays(reference);
            return any_of(reads, [&](ArrayId r) { return reads_array(sum->body, r); });
        };
        const auto divides = [&](const Part& p) {
            const auto reads = read_arrays(p.e);
            return p.sign < 0 && any_of(reads, sums_weights);
        };
        const auto tail = factors(t.tail), body = factors(t.body);
        return any_of(tail, divides) &&
               any_of(body, [&](const Part& p) { return !stream_.runs(p.e) && options_.wide(p.e); });
    }

    [[nodiscard]] StateSpec state_of(const Term& t) const {
        Correction correction{t.references, t.selections, std::nullopt, kept_};
        Expr body = masked_body(t);
        if (kept_) body = simplify(binary(BinaryOp::mul, body, kept_));
        return {"_acc", op_, std::move(body), correction};
    }
    /// The masks stay on the factor that they were written on: a product of two arrays remains one.
    static Expr masked_body(const Term& t) {
        if (!t.masked_factor || !t.body) return masked(t.masks, or_one(t.body));
        std::vector<Part> parts = factors(t.body);
        const auto found = find_if(parts, [&](const Part& p) { return p.sign > 0 && equal(p.e, t.masked_factor); });
        if (found == parts.end()) return masked(t.masks, t.body);
        found->e = masked(t.masks, found->e);
        Expr out;
        for (const auto& [sign, e] : parts) out = sign > 0 ? times(out, e) : over(out, e);
        return out;
    }

    /// Null, and failure_, where the term is refused.
    Expr value_of(Term& t) {
        Expr value;
        const bool counts = !t.body && t.masks.empty() && t.references.empty() && op_ == ReduceOp::sum;
        if (!t.shifted.empty()) {
            splitter_.note(law(op_, Action::shift).condition);
            auto sum = moments(t, stream_, options_, t.undefined);
            if (auto* failure = std::get_if<FactorFailure>(&sum)) {
                failure_ = *failure;
                return nullptr;
            }
            value = std::get<Expr>(sum);
        } else if (counts) {
            value = number_of_points(stream_);
        } else {
            value = options_.make_state(state_of(t));
        }
        settle_undefined(t, stream_);
        for (const Expr& c : t.vanishing) value = select(c, constant(0), value);
        if (t.tail) {
            Expr acted = op_ == ReduceOp::prod
                             ? simplify(binary(BinaryOp::mul, value,
                                               binary(BinaryOp::pow, t.tail, number_of_points(stream_))))
                         : as<Constant>(value) ? value
                                               : multiplied(value, t.tail);
            if (const auto absorbing = law(op_, tail_action()).absorbing; t.masked_tail && absorbing) {
                // Where nothing was selected, or of an extremum a 0 that a mask put there, the factor does not count,
                // not even an infinite one.
                Expr stays = binary(BinaryOp::eq, value, constant(*absorbing));
                if (*absorbing != 0)
                    stays = binary(BinaryOp::logical_or, stays, binary(BinaryOp::eq, value, constant(0)));
                acted = select(stays, *absorbing != 0 ? value : constant(0), acted);
            }
            value = acted;
        }
        for (auto c = t.undefined.begin(); c != t.undefined.end(); ++c)
            if (std::none_of(t.undefined.begin(), c, [&](const Expr& said) { return equal(said, *c); }))
                value = select(*c, constant(nan), value);
        return masked(t.guards, value);
    }

    /// value · tail, one factor after the other, in this order. First come the stream's results that divide. What is
    /// accumulated and what divides it are of one magnitude, while a constant over either need not be a number of the
    /// type. Then come numbers below 1, which the definition has inside the sum. Without them, a product of two sums
    /// may not be a number of the type. Then come the stream's other results, and all else.
    [[nodiscard]] Expr multiplied(Expr value, const Expr& tail) const {
        const auto rank = [&](int sign, const Expr& part) {
            if (stream_.runs(part)) return sign < 0 ? 0 : 2;
            const auto* c = as<Constant>(part);
            return c && sign > 0 && std::abs(c->value) < 1 ? 1 : 3;
        };
        const auto parts = factors(tail);
        for (const int turn : {0, 1, 2, 3})
            for (const auto& [sign, part] : parts) {
                if (rank(sign, part) != turn) continue;
                const auto* c = as<Constant>(part);
                value = c && c->value == -1 ? negated(value) : sign > 0 ? times(value, part) : over(value, part);
            }
        return value;
    }

    /// Only the reciprocal of a positive sum can be corrected from the first step on: κ/κ′ = z′/z.
    void keep_reciprocal(Term& t) {
        if (!t.tail || !t.shifted.empty() || !t.guards.empty() || !t.undefined.empty() || t.masked_tail) return;
        const auto* quotient = as<Binary>(t.tail);
        const auto* one = quotient && quotient->op == BinaryOp::div ? as<Constant>(quotient->a) : nullptr;
        const auto* z = one && one->value == 1 ? as<Read>(quotient->b) : nullptr;
        const Equation* sum = z && stream_.running(z->array) ? stream_.definition(z->array) : nullptr;
        if (!sum || sum->reduce != ReduceOp::sum || !stream_.positive(quotient->b)) return;
        kept_ = t.tail;
        t.tail = nullptr;
        // The sum is kept from being 0 while nothing has arrived: where it is 0 at the end, the definition divides by
        // that.
        if (stream_.values(quotient->b).has(ValueClass::zero))
            t.undefined.push_back(binary(BinaryOp::eq, quotient->b, constant(0)));
    }
};

bool has_exponential(const Expr& e) {
    bool found = false;
    if (e)
        visit(e, [&](const Expr& node) {
            const auto* u = as<Unary>(node);
            const auto* b = as<Binary>(node);
            found = found || (u && (u->op == UnaryOp::exp || u->op == UnaryOp::exp2)) || (b && b->op == BinaryOp::pow);
        });
    return found;
}

/// max and min: first what is monotone in the stream, else one term with a positive factor that waits.
std::variant<Factored, FactorFailure> factor_extremum(ReduceOp op, const Expr& body, const Stream& stream,
                                                      const FactorOptions& options, Splitter& splitter) {
    if (auto peeled = peel(op, body, stream, splitter)) {
        Factored out;
        StateSpec spec{"_acc", peeled->op, peeled->core, {{}, peeled->selections, std::nullopt, nullptr}};
        out.conditions = splitter.conditions;
        if (!peeled->finish) {
            out.plain = spec;
        } else {
            out.finish = peeled->finish(options.make_state(spec));
        }
        return out;
    }
    const FactorFailure failure = splitter.failure;
    splitter.failure = {};
    auto terms = splitter.split(body);
    if (!terms || terms->size() != 1 || !terms->front().shifted.empty() || !terms->front().guards.empty())
        return failure;
    const Term& t = terms->front();
    if (t.tail && !stream.positive(where_defined(t.tail)))
        return FactorFailure{"a factor under max or min must be provably positive", t.tail};
    // What loses against the extremum is out of sight, though it may be what the factor makes NaN.
    const auto may_be = [&](const Expr& e, unsigned kinds) { return e && (stream.values(e).bits() & kinds) != 0; };
    constexpr unsigned infinite = ValueClass::infinite | ValueClass::minus_infinite;
    if (may_be(t.body, infinite) && may_be(t.tail, infinite | ValueClass::zero))
        return FactorFailure{"a factor that may be 0 or infinite meets values that may be infinite", t.tail};
    // What has the largest weight may lose by its sign. What wins then weighs next to nothing, and the factor that
    // waits may overflow.
    const Expr weighed = or_one(t.body);
    const bool wins_by_weight = stream.not_negative(op == ReduceOp::max ? weighed : negated(weighed));
    if (!t.references.empty() && has_exponential(t.tail) && !wins_by_weight)
        return FactorFailure{"an exponential under max or min weighs values whose sign is not known", body};
    return SumFactoring(op, stream, options, splitter).run(*terms);
}

}  // namespace

bool operator==(const Reference& a, const Reference& b) {
    return same(a.value, b.value) && same(a.guarded, b.guarded) && same(a.scale, b.scale) && a.is_max == b.is_max &&
           same(a.base, b.base) && a.is_of_more == b.is_of_more;
}
bool operator==(const Selection& a, const Selection& b) {
    return same(a.extremum, b.extremum) && same(a.nothing, b.nothing) && a.or_nan == b.or_nan;
}
bool operator==(const CentredMoment& a, const CentredMoment& b) {
    return a.powers == b.powers && a.lower == b.lower && a.is_masked == b.is_masked &&
           std::equal(a.origins.begin(), a.origins.end(), b.origins.begin(), b.origins.end(), same);
}
bool operator==(const Correction& a, const Correction& b) {
    return a.references == b.references && a.selections == b.selections && a.moment == b.moment && same(a.kept, b.kept);
}

std::variant<Factored, FactorFailure> factor(ReduceOp op, const Expr& written, const Stream& stream,
                                             const FactorOptions& options) {
    // A choice by constants is none: its sides would be summed apart from what is subtracted from them.
    const Expr body = stream.runs(written) ? simplify(written) : written;
    if (!stream.runs(body)) {
        Factored out;
        out.plain = StateSpec{"", op, body, {}};
        return out;
    }
    Splitter splitter(stream, options, stream.whole(body));
    if (op == ReduceOp::max || op == ReduceOp::min) return factor_extremum(op, body, stream, options, splitter);
    auto terms = splitter.split(body);
    if (!terms) return splitter.failure;
    if (op == ReduceOp::prod) {
        if (stream.whole(body)) return FactorFailure{"the power of an integer that wraps is no product", body};
        const bool factor_only = terms->size() == 1 && terms->front().shifted.empty() &&
                                 terms->front().references.empty() && terms->front().guards.empty() &&
                                 terms->front().selections.empty();
        if (!factor_only) return FactorFailure{"only a factor moves out of a product", body};
    }
    return SumFactoring(op, stream, options, splitter).run(std::move(*terms));
}

}  // namespace napkin
