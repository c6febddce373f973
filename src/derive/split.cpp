#include "derive/split.hpp"

#include <cmath>
#include <limits>

#include "algebra/polynomial.hpp"
#include "derive/centre.hpp"
#include "derive/law.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr std::size_t max_terms = 64;  // an expansion beyond this is refused rather than left to grow
constexpr int max_power = 8;
/// b^exponent with a constant base above 1, or e^exponent (base null).
struct Power {
    Expr base, exponent;
};
std::optional<Power> as_exponential(const Expr& e) {
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::exp) return Power{nullptr, u->a};
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::exp2) return Power{constant(2), u->a};
    const auto* b = as<Binary>(e);
    if (!b || b->op != BinaryOp::pow) return std::nullopt;
    if (const auto* base = as<Constant>(b->a); base && base->value > 0 && base->value != 1 && std::isfinite(base->value)) {
        if (base->value > 1) return Power{b->a, b->b};
        return Power{constant(1 / base->value), negated(b->b)};
    }
    if (const auto* exponent = as<Constant>(b->b); exponent && std::isfinite(exponent->value))
        if (auto inner = as_exponential(b->a)) return Power{inner->base, times(inner->exponent, b->b)};
    return std::nullopt;
}

}  // namespace

std::nullopt_t Splitter::fail(const std::string& reason, const Expr& term) {
    if (!failure.term) failure = {reason, term};
    return std::nullopt;
}
void Splitter::note(std::string_view condition) {
    for (const auto& c : conditions)
        if (c == condition) return;
    conditions.emplace_back(condition);
}

std::optional<Terms> Splitter::split(const Expr& e, const Conditions& masks) {
    if (!masks.empty()) return compute(e, masks);
    if (const auto hit = known_.find(e); hit != known_.end()) return hit->second;
    auto out = compute(e, masks);
    known_.emplace(e, out);
    return out;
}

std::optional<Terms> Splitter::compute(const Expr& e, const Conditions& masks) {
    Term whole;
    if (!stream_.streams(e)) {
        whole.tail = e;
        return Terms{whole};
    }
    if (!stream_.runs(e)) {
        whole.body = e;
        return Terms{whole};
    }
    if (const auto p = as_exponential(e)) return exponential_of(e, p->base, p->exponent, masks);
    if (const auto* b = as<Binary>(e)) {
        if (b->op == BinaryOp::add || b->op == BinaryOp::sub) return sum(e, masks);
        if (b->op == BinaryOp::mul || b->op == BinaryOp::div) return product(e, masks);
        if (b->op == BinaryOp::pow) {
            if (const auto* c = as<Constant>(b->b)) return power(e, b->a, c->value, masks);
            return fail("a power whose exponent is not a constant does not separate", e);
        }
        return fail(std::string("no operation distributes over '") + std::string(name(b->op)) +
                        "' of the stream and a running result",
                    e);
    }
    if (const auto* u = as<Unary>(e)) {
        switch (u->op) {
            case UnaryOp::neg: return product(e, masks);
            case UnaryOp::sqrt: return power(e, u->a, 0.5, masks);
            case UnaryOp::rsqrt: return power(e, u->a, -0.5, masks);
            case UnaryOp::abs: return wrapped(e, u->a, masks);
            case UnaryOp::log: return sum(e, masks);
            default: break;
        }
        return fail(std::string("no operation distributes over '") + std::string(name(u->op)) +
                        "' of the stream and a running result",
                    e);
    }
    if (const auto* s = as<Select>(e)) return choice(e, *s, masks);
    if (const auto* c = as<Cast>(e)) {
        if (!is_float(c->type)) return fail("a cast to an integer does not distribute", e);
        return wrapped(e, c->a, masks);
    }
    return fail("it mixes the stream with a running result", e);
}

std::optional<Terms> Splitter::sum(const Expr& e, const Conditions& masks) {
    Shifted together;
    Terms out;
    for (const auto& [sign, part] : addends(e)) {
        const FactorFailure before = failure;
        if (auto pair = separate(part)) {
            together.a = sign > 0 ? plus(together.a, pair->a) : minus(together.a, pair->a);
            together.b = sign > 0 ? plus(together.b, pair->b) : minus(together.b, pair->b);
            continue;
        }
        failure = before;
        if (equal(part, e)) return fail("it is not a sum of a part of the stream and a part of the running results", e);
        auto terms = split(part, masks);
        if (!terms) return std::nullopt;
        for (auto& t : *terms) {
            if (sign < 0) t.tail = negated(or_one(t.tail));
            out.push_back(std::move(t));
        }
    }
    // The terms may be far larger than their sum: an extremum is the value of some point.
    if (!wraps_ && !out.empty() && together.b) {
        const auto parts = addends(together.b);
        const auto found = find_if(parts, [&](const auto& p) { return follows_extremum(p.e, stream_); });
        if (found != parts.end()) return fail("what an extremum of it is subtracted from does not separate", e);
    }
    Term t;
    if (wraps_ && together.a && together.b) {
        Term waits;
        waits.tail = together.b;
        out.insert(out.begin(), std::move(waits));
        together.b = nullptr;
    }
    if (together.a && together.b) {
        // B − A as −(A − B): a quantity has one centre, whichever way it is subtracted.
        if (const auto* u = as<Unary>(together.a); u && u->op == UnaryOp::neg) {
            together = {u->a, negated(together.b)};
            t.tail = constant(-1);
        }
        t.shifted.push_back(together);
    } else {
        t.body = together.a;
        t.tail = together.b;
    }
    if (together.a || together.b) out.insert(out.begin(), std::move(t));
    if (out.size() > max_terms) return fail("it expands into too many separable terms", e);
    return out;
}

std::optional<Terms> Splitter::product(const Expr& e, const Conditions& masks) {
    const auto parts = factors(e);
    // Exponentials of one base are one exponential: A and B in different factors are still A + B.
    std::vector<std::pair<Power, std::size_t>> joined;  // and the number of factors
    const auto find = [&](const Expr& base) {
        for (auto& j : joined)
            if (base && j.first.base ? equal(base, j.first.base) : !base && !j.first.base) return &j;
        return static_cast<std::pair<Power, std::size_t>*>(nullptr);
    };
    for (const auto& [sign, part] : parts) {
        const auto p = as_exponential(part);
        if (!p) continue;
        const Expr exponent = sign > 0 ? p->exponent : negated(p->exponent);
        // What has a reference of its own keeps it: beside the other's exponent its differences would be rounded.
        if (is_dominated(exponent, masks)) continue;
        if (auto* known = find(p->base)) {
            known->first.exponent = plus(known->first.exponent, exponent);
            ++known->second;
        } else {
            joined.push_back({{p->base, exponent}, 1});
        }
    }
    Terms out{Term{}};
    const auto take = [&](const std::optional<Terms>& next) {
        if (!next) return false;
        auto all = multiplied(e, out, *next);
        if (all) out = std::move(*all);
        return all.has_value();
    };
    for (const auto& [sign, part] : parts) {
        if (const auto p = as_exponential(part)) {
            const Expr alone = sign > 0 ? p->exponent : negated(p->exponent);
            if (is_dominated(alone, masks)) {
                if (!take(exponential_of(exponential(p->base, alone), p->base, alone, masks))) return std::nullopt;
                continue;
            }
            auto* known = find(p->base);
            if (known->second > 0) {
                const Expr whole = exponential(p->base, known->first.exponent);
                if (!take(stream_.mixed(whole) ? exponential_of(whole, p->base, known->first.exponent, masks)
                                               : compute(whole, masks)))
                    return std::nullopt;
            }
            known->second = 0;
            continue;
        }
        if (!take(sign > 0 ? split(part, masks) : inverse(part, masks))) return std::nullopt;
    }
    return out;
}

bool Splitter::is_dominated(const Expr& exponent, const Conditions& masks) {
    if (!stream_.mixed(exponent)) return false;
    const FactorFailure before = failure;
    const auto sum = separate(exponent);
    failure = before;
    if (!sum || !sum->a || !sum->b) return false;
    const auto parts = addends(sum->b);
    return parts.size() == 1 && dominance(parts[0].e, parts[0].sign, sum->a, masks, stream_);
}

std::optional<Terms> Splitter::multiplied(const Expr& whole, const Terms& a, const Terms& b) {
    if (a.size() * b.size() > max_terms) return fail("it expands into too many separable terms", whole);
    // A product of differences is small where both are, which products of their parts do not tell.
    const auto cancels = [&](const Term& t) {
        return !t.shifted.empty() || (t.body && !stream_.not_negative(t.body)) ||
               (t.tail && !stream_.not_negative(where_defined(t.tail)));
    };
    if (!wraps_ && a.size() > 1 && b.size() > 1 && any_of(a, cancels) && any_of(b, cancels))
        return fail("a product of sums whose parts may cancel is not multiplied out", whole);
    Terms out;
    for (const auto& s : a) {
        for (const auto& t : b) {
            Term p = s;
            // Weights come first, so that V * P and P * V share what is made of them.
            p.body = s.references.empty() && !t.references.empty() ? times(t.body, s.body) : times(s.body, t.body);
            p.tail = times(s.tail, t.tail);
            if (const auto* c = p.tail ? as<Constant>(p.tail) : nullptr; c && c->value == 1) p.tail = nullptr;
            if (t.masks.empty() != s.masks.empty()) {
                const Term& under = t.masks.empty() ? s : t;
                p.masked_factor = under.masked_factor ? under.masked_factor : under.body;
            } else {
                p.masked_factor = nullptr;
            }
            append(p.masks, t.masks);
            p.masked_tail = s.masked_tail || t.masked_tail || (s.is_branch && t.tail) || (t.is_branch && s.tail);
            p.is_branch = s.is_branch || t.is_branch;
            append(p.shifted, t.shifted);
            append(p.references, t.references);
            append(p.selections, t.selections);
            append(p.guards, t.guards);
            append(p.undefined, t.undefined);
            append(p.vanishing, t.vanishing);
            if (p.shifted.size() > max_power) return fail("its degree in a running result is too high", whole);
            out.push_back(std::move(p));
        }
    }
    return out;
}

std::optional<Terms> Splitter::inverse(const Expr& e, const Conditions& masks) {
    Term t;
    if (!stream_.streams(e) || !stream_.runs(e)) {
        (stream_.streams(e) ? t.body : t.tail) = over(nullptr, e);
        return Terms{t};
    }
    auto terms = split(e, masks);
    if (!terms) return std::nullopt;
    t = terms->front();
    if (terms->size() != 1 || !t.shifted.empty() || !t.references.empty() || !t.selections.empty() || !t.guards.empty())
        return fail("a sum of stream and running result stands in a denominator", e);
    t.body = over(nullptr, masked(t.masks, or_one(t.body)));
    t.masks.clear();
    t.vanishing.clear();
    t.tail = over(nullptr, t.tail);
    return Terms{t};
}

std::optional<Terms> Splitter::power(const Expr& whole, const Expr& base, double exponent, const Conditions& masks) {
    const bool whole_number = exponent == std::floor(exponent);
    const auto parts = factors(base);
    if (parts.size() > 1 || parts[0].sign < 0) {
        // The power of a product is the product of powers; a root only where the factors are positive.
        Expr powers;
        for (const auto& [sign, part] : parts) {
            const bool free_of_stream = !stream_.streams(part);
            if (!whole_number && free_of_stream && stream_.runs(part) && !stream_.positive(part))
                return fail("a root of a product needs a factor that is provably positive", part);
            if (!whole_number && stream_.fixed(part) && !stream_.positive(part))
                return fail("a root of a product needs a factor that is provably positive", part);
            const Expr p = simplify(binary(BinaryOp::pow, part, constant(exponent)));
            powers = sign > 0 ? times(powers, p) : over(powers, p);
        }
        if (!whole_number) note("a root of a product is the product of roots, its running factor being positive");
        return split(powers, masks);
    }
    if (exponent >= 1 && exponent <= max_power && whole_number) {
        auto terms = split(base, masks);
        if (!terms) return std::nullopt;
        Terms out = *terms;
        for (int i = 1; i < static_cast<int>(exponent); ++i) {
            auto next = multiplied(whole, out, *terms);
            if (!next) return std::nullopt;
            out = std::move(*next);
        }
        return out;
    }
    return fail("a fractional or negative power of a sum does not separate", whole);
}

/// |t| and casts of t: of the factor in the stream and of the one that waits.
std::optional<Terms> Splitter::wrapped(const Expr& e, const Expr& inner, const Conditions& masks) {
    auto terms = split(inner, masks);
    if (!terms) return std::nullopt;
    const auto* c = as<Cast>(e);
    if (terms->size() != 1 || !terms->front().shifted.empty())
        return fail(c ? "a cast of a sum of stream and running result does not distribute"
                      : "the absolute value of a sum does not separate",
                    e);
    Term& t = terms->front();
    if (c) {
        note("a cast commutes with a factor up to one rounding");
        if (t.body) t.body = cast(c->type, t.body);
    } else {
        if (t.body) t.body = simplify(unary(UnaryOp::abs, t.body));
        if (t.tail) t.tail = simplify(unary(UnaryOp::abs, t.tail));
    }
    return terms;
}

std::optional<Terms> Splitter::exponential_of(const Expr& whole, const Expr& base, const Expr& exponent,
                                              const Conditions& masks) {
    auto sum = separate(exponent);
    if (!sum) return fail("the exponent is not a sum of a part of the stream and a part of the running results", whole);
    if (!sum->a || !sum->b) return compute(exponential(base, sum->a ? sum->a : or_zero(sum->b)), masks);
    if (const Expr early = part_met_early(exponent, stream_)) return fail(std::string(met_early), early);
    note(law(ReduceOp::sum, Action::exponential).condition);

    // Exponentials that were joined may cancel in part: what is left may be dominated where the whole is not.
    auto parts = addends(sum->b);
    bool as_written = true;
    Conditions cancelled;  // where what cancels is undefined
    if (parts.size() > 1) {
        const Polynomial normal = polynomial(where_defined(sum->b));
        if (normal.size() < parts.size()) {
            const Expr before = sum->b;
            sum->b = to_expr(normal);
            if (masks.empty()) cancelled = lost(before, sum->b, stream_);
            parts = addends(sum->b);
            as_written = false;
        }
    }
    // What neither streams nor runs belongs to the exponent's own part, of which the maximum was taken.
    Expr fixed, running;
    for (const auto& [sign, part] : parts) {
        Expr& to = stream_.runs(part) ? running : fixed;
        to = sign > 0 ? plus(to, part) : minus(to, part);
    }

    Term t;
    for (const bool with_fixed : {true, false}) {
        const Expr a = with_fixed ? plus(sum->a, fixed) : sum->a;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (!stream_.runs(parts[i].e)) continue;
            const auto found = dominance(parts[i].e, parts[i].sign, a, masks, stream_);
            if (!found) continue;
            Extremum r = found->extremum;
            // Under a mask that lets nothing through, the sum is 0 even beside NaN, which no difference follows.
            if (!masks.empty() && stream_.values(r.value).has(ValueClass::undefined)) continue;
            // The least integer stands for an empty maximum: as a real number, so that no difference wraps.
            if (stream_.whole(r.value)) r = {r.is_max, r.of, cast(DType::f64, r.value), nullptr, r.guarded};
            Expr rest;
            for (std::size_t k = 0; k < parts.size(); ++k) {
                const auto& [sign, part] = parts[k];
                if (k == i || (with_fixed && !stream_.runs(part))) continue;
                const auto* u = as<Unary>(part);
                if (!base && u && u->op == UnaryOp::log) {
                    t.tail = sign > 0 ? times(t.tail, u->a) : over(t.tail, u->a);
                } else {
                    rest = sign > 0 ? plus(rest, part) : minus(rest, part);
                }
            }
            // Where nothing counts 0 is accumulated, which the rest's exponential may meet as infinity. Beside a
            // maximum of the exponent's own, which is -inf there, it is 0.
            if (rest && (!masks.empty() || stream_.values(a).has(ValueClass::minus_infinite))) continue;
            const Expr scaled = times(r.guarded, found->scale);
            Expr inner = r.is_max ? minus(a, scaled) : plus(a, scaled);
            // (A − M)·s is nearer to the truth than A·s − M·s: what was written that way stays so.
            if (found->scale && as_written && !rest && !t.tail)
                inner = transform(
                    exponent, [&](const Expr& node) { return equal(node, found->extremum.value) ? r.guarded : node; });
            t.references = {{r.value, r.guarded, found->scale, r.is_max, base, !masks.empty()}};
            t.body = exponential(base, inner);
            if (options_.lowered(found->extremum.value)) lower(t);
            t.undefined = cancelled;
            if (masks.empty() && r.empty) t.undefined.push_back(r.empty);
            if (!masks.empty() && r.empty && stream_.values(a).has(ValueClass::minus_infinite)) {
                // Nothing is selected, or something that is -inf beside a maximum of -inf.
                const Expr selected = options_.make_state({"_selected", ReduceOp::sum, masked(masks, constant(1)), {}});
                t.undefined.push_back(binary(BinaryOp::logical_and, r.empty, binary(BinaryOp::gt, selected, constant(0))));
            }
            if (rest) t.tail = times(t.tail, exponential(base, rest));
            return Terms{t};
        }
        if (!fixed) break;
    }
    if (!running) {
        auto terms = compute(exponential(base, plus(sum->a, fixed)), masks);
        if (terms)
            for (Term& term : *terms) append(term.undefined, cancelled);
        return terms;
    }
    // No running result is known to dominate the exponent: a maximum of its own does, whatever the others do meanwhile.
    const Expr a = stream_.whole(sum->a) ? cast(DType::f64, plus(sum->a, fixed)) : plus(sum->a, fixed);
    StateSpec spec{"_max", ReduceOp::max, masks.empty() ? a : select(conjunction(masks), a, constant(-infinity)), {}};
    const Expr m = options_.make_state(spec);
    const Expr guarded = select(binary(BinaryOp::eq, unary(UnaryOp::abs, m), constant(infinity)), constant(0), m);
    t.undefined = cancelled;
    // Where nothing counts, or only what weighs nothing, the maximum is -inf and the tail 0, whatever the running
    // results.
    t.tail = exponential(base, plus(m, running));
    // The exponent A − max A is 0 at most, but for the rounding of A: of A near 1e38 that is more than any exponential
    // bears.
    t.vanishing.push_back(binary(BinaryOp::eq, t.tail, constant(0)));
    t.references = {{m, guarded, nullptr, true, base, false}};
    t.body = exponential(base, minus(a, guarded));
    if (options_.lowered(m)) lower(t);
    return Terms{t};
}

/// Takes 1/n of the term's weights, n being the number of reduced points; the tail takes it back.
void Splitter::lower(Term& t) const {
    const Expr points = number_of_points(stream_);
    t.body = binary(BinaryOp::mul, t.body, binary(BinaryOp::pow, points, constant(-1)));
    t.tail = times(points, t.tail);
}

std::optional<Selection> Splitter::selected(const Expr& condition, const Expr& nothing, const Conditions& masks) const {
    const auto* b = as<Binary>(condition);
    if (!b) return std::nullopt;
    const auto* nan = b->op == BinaryOp::logical_or ? as<Binary>(b->b) : nullptr;
    if (nan && nan->op == BinaryOp::ne && equal(nan->a, nan->b)) {
        const auto* is = as<Binary>(b->a);
        if (!is || is->op != BinaryOp::eq || (!equal(is->a, nan->a) && !equal(is->b, nan->a))) return std::nullopt;
        auto out = selected(b->a, nothing, masks);
        if (out) out->or_nan = true;
        return out;
    }
    for (const bool turned : {false, true}) {
        const Expr& a = turned ? b->b : b->a;
        const Expr& m = turned ? b->a : b->b;
        if (!stream_.streams(a) || stream_.streams(m) || stream_.runs(a)) continue;
        const BinaryOp at_least = turned ? BinaryOp::le : BinaryOp::ge, at_most = turned ? BinaryOp::ge : BinaryOp::le;
        for (const bool is_max : {true, false}) {
            if (b->op != BinaryOp::eq && b->op != (is_max ? at_least : at_most)) continue;
            if (!as<Read>(m)) continue;
            const auto found = extremum(m, is_max, stream_);
            if (found && covers(*found, a, masks, stream_)) return Selection{m, nothing};
        }
    }
    return std::nullopt;
}

std::optional<Terms> Splitter::branch(const Expr& side, const Conditions& stated, const Conditions& masks) {
    if (is_zero(side)) return Terms{};
    Conditions of_stream, guards;
    Conditions running;
    std::vector<Selection> selections;
    for (const auto& c : stated) {
        if (!stream_.streams(c)) {
            guards.push_back(c);
        } else if (!stream_.runs(c)) {
            of_stream.push_back(c);
        } else {
            running.push_back(c);
        }
    }
    Conditions inside = masks;
    append(inside, of_stream);
    for (const Expr& condition : running) {
        const auto found = selected(condition, constant(0), inside);
        if (!found) return fail("the condition depends on a running result", condition);
        selections.push_back(*found);
        note(law(ReduceOp::sum, Action::select).condition);
    }
    auto terms = split(side, inside);
    if (!terms) return std::nullopt;
    if (!guards.empty()) note(law(ReduceOp::sum, Action::choose).condition);
    // What is reduced is read where the guards, which wait behind the sum, do not hold. Those on running results are
    // not known yet.
    Conditions known;
    for (const Expr& c : guards)
        if (!stream_.runs(c)) known.push_back(c);
    const auto kept_inside = [&](Expr& e) {
        if (e && !known.empty()) e = stream_.with_guarded_reads(e, conjunction(known));
    };
    for (auto& t : *terms) {
        kept_inside(t.body);
        for (Shifted& pair : t.shifted) kept_inside(pair.a);
        for (Expr& mask : t.masks) kept_inside(mask);
        // A constant stays in its branch: behind the sum an infinite one would meet the other branch's 0.
        if (!t.body && t.shifted.empty() && t.tail && as<Constant>(t.tail)) std::swap(t.body, t.tail);
        t.masked_tail = t.masked_tail || (t.tail && !of_stream.empty());
        if (!of_stream.empty() || !running.empty()) t.masked_factor = nullptr;  // they are of all that stands here
        t.masks.insert(t.masks.begin(), of_stream.begin(), of_stream.end());
        t.guards.insert(t.guards.begin(), guards.begin(), guards.end());
        append(t.masks, running);
        append(t.selections, selections);
    }
    return terms;
}

std::optional<Terms> Splitter::choice(const Expr& e, const Select& s, const Conditions& masks) {
    const Conditions taken = conjuncts(s.condition);
    auto out = branch(s.a, taken, masks);
    if (!out) return std::nullopt;
    auto other = branch(s.b, {simplify(unary(UnaryOp::logical_not, s.condition))}, masks);
    if (!other) return std::nullopt;
    const bool are_branches = !out->empty() && !other->empty();
    append(*out, *other);
    for (Term& t : *out) t.is_branch = t.is_branch || (are_branches && !t.masks.empty());
    if (out->size() > max_terms) return fail("it expands into too many separable terms", e);
    return out;
}

std::optional<Shifted> Splitter::separate(const Expr& e) {
    auto out = separator_.separate(e);
    if (!out) fail(separator_.failure().reason, separator_.failure().term);
    return out;
}

}  // namespace napkin
