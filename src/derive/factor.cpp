#include "derive/factor.hpp"

#include <cmath>

#include "support/result.hpp"

namespace napkin {
namespace {

constexpr std::size_t max_terms = 64;  // an expansion beyond this is refused rather than left to grow
constexpr int max_power = 8;

Expr times(const Expr& a, const Expr& b) {
    if (!a) return b;
    if (!b) return a;
    return simplify(binary(BinaryOp::mul, a, b));
}
Expr plus(const Expr& a, const Expr& b) {
    if (!a) return b;
    if (!b) return a;
    return simplify(binary(BinaryOp::add, a, b));
}
Expr negated(const Expr& a) { return a ? simplify(unary(UnaryOp::neg, a)) : a; }
Expr inverse(const Expr& a) { return a ? simplify(binary(BinaryOp::div, constant(1), a)) : a; }
Expr or_one(const Expr& a) { return a ? a : constant(1); }

bool is_infinite_constant(const Expr& e) {
    const auto* c = as<Constant>(e);
    return c && std::isinf(c->value);
}

/// a(x) + b(ν); either part may be null (0).
struct Sum {
    Expr a, b;
};

class Factoring {
public:
    Factoring(const Leaves& leaves, const FactorOptions& options) : leaves_(leaves), options_(options) {}

    std::optional<std::vector<Term>> split(const Expr& e) {
        if (!runs(e)) return std::vector<Term>{streams(e) ? term_of(e) : tail_of(e)};
        if (!streams(e)) return std::vector<Term>{tail_of(e)};
        if (const auto* b = as<Binary>(e)) return split_binary(e, *b);
        if (const auto* u = as<Unary>(e)) return split_unary(e, *u);
        if (const auto* s = as<Select>(e)) return split_select(e, *s);
        if (const auto* c = as<Cast>(e)) return split_cast(e, *c);
        return fail("it mixes the stream with a running result", e);
    }

    /// e as a(x) + b(ν): what (max, +), (min, +) and the exponent of exp need.
    std::optional<Sum> separate(const Expr& e) {
        if (!runs(e)) return Sum{e, nullptr};
        if (!streams(e)) return Sum{nullptr, e};
        if (const auto* b = as<Binary>(e)) return separate_binary(e, *b);
        if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) {
            const auto inner = separate(u->a);
            if (!inner) return std::nullopt;
            return Sum{negated(inner->a), negated(inner->b)};
        }
        if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::log) return separate_log(u->a);
        if (const auto* s = as<Select>(e); s && !runs(s->condition)) {
            // A masked side is absorbing: where(c, a + b, -inf) = where(c, a, -inf) + b.
            const bool first = is_infinite_constant(s->b);
            if (first || is_infinite_constant(s->a)) {
                const auto inner = separate(first ? s->a : s->b);
                if (!inner) return std::nullopt;
                const Expr a = inner->a ? inner->a : constant(0);
                return Sum{first ? select(s->condition, a, s->b) : select(s->condition, s->a, a), inner->b};
            }
        }
        if (const auto* c = as<Cast>(e); c && is_float(c->type)) return separate(c->a);
        fail("it is not a sum of a part of the stream and a part of the running results", e);
        return std::nullopt;
    }

    [[nodiscard]] bool runs(const Expr& e) const {
        bool found = false;
        visit(e, [&](const Expr& node) {
            if (const auto* r = as<Read>(node)) found = found || leaves_.is_running(*r);
        });
        return found;
    }
    [[nodiscard]] bool streams(const Expr& e) const {
        for (const AxisId axis : leaves_.axes)
            if (depends_on_axis(e, axis)) return true;
        return false;
    }

    FactorFailure failure;
    std::vector<Centre> centres;
    std::vector<std::string> conditions;

private:
    const Leaves& leaves_;
    const FactorOptions& options_;

    std::nullopt_t fail(const std::string& reason, const Expr& term) {
        if (!failure.term) failure = {reason, term};
        return std::nullopt;
    }
    void note(const std::string& condition) {
        for (const auto& c : conditions)
            if (c == condition) return;
        conditions.push_back(condition);
    }
    static Term term_of(const Expr& e) {
        Term t;
        t.body = e;
        return t;
    }
    static Term tail_of(const Expr& e) {
        Term t;
        t.tail = e;
        return t;
    }

    std::optional<std::vector<Term>> product(const Expr& whole, const std::vector<Term>& a, const std::vector<Term>& b) {
        if (a.size() * b.size() > max_terms) return fail("it expands into too many separable terms", whole);
        std::vector<Term> out;
        for (const auto& s : a) {
            for (const auto& t : b) {
                if (s.centre >= 0 && t.centre >= 0 && s.centre != t.centre)
                    return fail("it multiplies differences of two different quantities of the stream", whole);
                Term p;
                p.body = times(s.body, t.body);
                p.centre = s.centre >= 0 ? s.centre : t.centre;
                p.power = s.power + t.power;
                if (p.power > max_power) return fail("its degree in a running result is too high", whole);
                p.log_kept = plus(s.log_kept, t.log_kept);
                p.tail = times(s.tail, t.tail);
                out.push_back(p);
            }
        }
        return out;
    }

    std::optional<std::vector<Term>> split_binary(const Expr& e, const Binary& b) {
        switch (b.op) {
            case BinaryOp::mul: {
                const auto x = split(b.a);
                if (!x) return std::nullopt;
                const auto y = split(b.b);
                if (!y) return std::nullopt;
                return product(e, *x, *y);
            }
            case BinaryOp::div: {
                const auto x = split(b.a);
                if (!x) return std::nullopt;
                const auto y = split(b.b);
                if (!y) return std::nullopt;
                if (y->size() != 1 || (*y)[0].power != 0)
                    return fail("a sum of stream and running result stands in a denominator", b.b);
                Term d = (*y)[0];
                d.body = inverse(d.body);
                d.tail = inverse(d.tail);
                d.log_kept = negated(d.log_kept);
                return product(e, *x, {d});
            }
            case BinaryOp::add:
            case BinaryOp::sub: return split_sum(e, b);
            case BinaryOp::pow: return split_power(e, b);
            default:
                return fail(std::string("'") + std::string(name(b.op)) +
                                "' of the stream and a running result does not separate",
                            e);
        }
    }

    std::optional<std::vector<Term>> split_sum(const Expr& e, const Binary& b) {
        if (auto shifted = split_around_centre(e)) return shifted;
        auto x = split(b.a);
        if (!x) return std::nullopt;
        auto y = split(b.b);
        if (!y) return std::nullopt;
        if (x->size() + y->size() > max_terms) return fail("it expands into too many separable terms", e);
        for (auto& t : *y) {
            if (b.op == BinaryOp::sub) t.tail = negated(or_one(t.tail));
            x->push_back(t);
        }
        return x;
    }

    /// A(x) + B(ν) as (A − c) + (c + B), c a running centre of A, so that powers of it do not cancel.
    std::optional<std::vector<Term>> split_around_centre(const Expr& e) {
        const auto sum = quiet_separate(e);
        if (!sum || !sum->a || !sum->b || !streams(sum->a)) return std::nullopt;
        const int centre = centre_of(sum->a);
        Term shifted;
        shifted.centre = centre;
        shifted.power = 1;
        note("a sum under a product is expanded around the running mean of its streamed part");
        return std::vector<Term>{shifted, tail_of(plus(centres[static_cast<std::size_t>(centre)].placeholder, sum->b))};
    }

    std::optional<Sum> quiet_separate(const Expr& e) {
        const FactorFailure before = failure;
        auto sum = separate(e);
        failure = before;
        return sum;
    }

    int centre_of(const Expr& a) {
        for (std::size_t i = 0; i < centres.size(); ++i)
            if (equal(centres[i].of, a)) return static_cast<int>(i);
        centres.push_back({a, options_.make_centre(a)});
        return static_cast<int>(centres.size()) - 1;
    }

    std::optional<std::vector<Term>> split_power(const Expr& e, const Binary& b) {
        if (const auto* exponent = as<Constant>(b.b)) return power(e, b.a, exponent->value);
        if (const auto* base = as<Constant>(b.a); base && base->value > 0)
            return split_exp(e, simplify(binary(BinaryOp::mul, b.b, constant(std::log(base->value)))));
        return fail("a power whose exponent is not a constant does not separate", e);
    }

    std::optional<std::vector<Term>> power(const Expr& whole, const Expr& base, double exponent) {
        auto terms = split(base);
        if (!terms) return std::nullopt;
        if (exponent >= 1 && exponent <= max_power && exponent == std::floor(exponent)) {
            auto out = *terms;
            for (int i = 1; i < static_cast<int>(exponent); ++i) {
                auto next = product(whole, out, *terms);
                if (!next) return std::nullopt;
                out = std::move(*next);
            }
            return out;
        }
        if (terms->size() != 1 || (*terms)[0].power != 0)
            return fail("a fractional or negative power of a sum does not separate", whole);
        Term t = (*terms)[0];
        if (exponent != std::floor(exponent)) {
            if (t.tail && !options_.positive(t.tail))
                return fail("a root of a product needs a factor that is provably positive", t.tail);
            note("a root of a product is the product of roots, its running factor being positive");
        }
        const auto raise = [&](const Expr& x) { return x ? simplify(binary(BinaryOp::pow, x, constant(exponent))) : x; };
        t.body = raise(t.body);
        t.tail = raise(t.tail);
        if (t.log_kept) t.log_kept = times(constant(exponent), t.log_kept);
        return std::vector<Term>{t};
    }

    std::optional<std::vector<Term>> split_unary(const Expr& e, const Unary& u) {
        switch (u.op) {
            case UnaryOp::neg: {
                auto terms = split(u.a);
                if (!terms) return std::nullopt;
                for (auto& t : *terms) t.tail = negated(or_one(t.tail));
                return terms;
            }
            case UnaryOp::exp: return split_exp(e, u.a);
            case UnaryOp::sqrt: return power(e, u.a, 0.5);
            case UnaryOp::rsqrt: return power(e, u.a, -0.5);
            case UnaryOp::abs: {
                auto terms = split(u.a);
                if (!terms) return std::nullopt;
                if (terms->size() != 1 || (*terms)[0].power != 0)
                    return fail("the absolute value of a sum does not separate", e);
                Term& t = (*terms)[0];
                if (t.body) t.body = simplify(unary(UnaryOp::abs, t.body));
                if (t.tail) t.tail = simplify(unary(UnaryOp::abs, t.tail));
                return terms;
            }
            case UnaryOp::log:
                if (auto shifted = split_around_centre(e)) return shifted;
                return fail("the logarithm is not of a product of positive factors", e);
            default:
                return fail(std::string("no operation distributes over '") + std::string(name(u.op)) +
                                "' of the stream and a running result",
                            e);
        }
    }

    /// exp(A(x) + B(ν)): kept whole, with exp(B(ν) − B(ν′)) as its correction; a logarithm in B is a power and joins the tail.
    std::optional<std::vector<Term>> split_exp(const Expr& whole, const Expr& exponent) {
        const auto sum = separate(exponent);
        if (!sum)
            return fail("the exponent is not a sum of a part of the stream and a part of the running results", whole);
        Term t;
        Expr kept;
        for (const auto& [sign, part] : addends(sum->b)) {
            if (const auto* u = as<Unary>(part); u && u->op == UnaryOp::log) {
                t.tail = times(t.tail, sign > 0 ? u->a : inverse(u->a));
            } else {
                kept = plus(kept, sign > 0 ? part : negated(part));
            }
        }
        t.log_kept = kept;
        t.body = unary(UnaryOp::exp, kept ? simplify(plus(or_zero(sum->a), kept)) : or_zero(sum->a));
        if (kept) note("exp(A(x) + B(ν)) is corrected by exp(B(ν) − B(ν′)), which does not depend on the stream");
        return std::vector<Term>{t};
    }
    static Expr or_zero(const Expr& a) { return a ? a : constant(0); }

    static std::vector<std::pair<int, Expr>> addends(const Expr& e) {
        std::vector<std::pair<int, Expr>> out;
        if (!e) return out;
        const std::function<void(const Expr&, int)> walk = [&](const Expr& node, int sign) {
            if (const auto* b = as<Binary>(node); b && (b->op == BinaryOp::add || b->op == BinaryOp::sub)) {
                walk(b->a, sign);
                walk(b->b, b->op == BinaryOp::sub ? -sign : sign);
            } else if (const auto* u = as<Unary>(node); u && u->op == UnaryOp::neg) {
                walk(u->a, -sign);
            } else {
                out.emplace_back(sign, node);
            }
        };
        walk(e, 1);
        return out;
    }

    /// log(a·b) = log a + log b where the factor without the stream is provably positive.
    std::optional<Sum> separate_log(const Expr& e) {
        const Expr logarithm = unary(UnaryOp::log, e);
        if (!runs(e)) return Sum{logarithm, nullptr};
        if (!streams(e)) {
            if (options_.positive(e)) return Sum{nullptr, logarithm};
            fail("the logarithm of a product needs a running factor that is provably positive", e);
            return std::nullopt;
        }
        if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::exp) return separate(u->a);
        const auto* b = as<Binary>(e);
        if (b && (b->op == BinaryOp::mul || b->op == BinaryOp::div)) {
            const auto x = separate_log(b->a);
            if (!x) return std::nullopt;
            auto y = separate_log(b->b);
            if (!y) return std::nullopt;
            if (b->op == BinaryOp::div) y = Sum{negated(y->a), negated(y->b)};
            return Sum{plus(x->a, y->a), plus(x->b, y->b)};
        }
        if (const auto* c = b && b->op == BinaryOp::pow ? as<Constant>(b->b) : nullptr) {
            const auto inner = separate_log(b->a);
            if (!inner) return std::nullopt;
            const auto scale = [&](const Expr& p) { return p ? times(constant(c->value), p) : p; };
            return Sum{scale(inner->a), scale(inner->b)};
        }
        fail("the logarithm is not of a product of positive factors", logarithm);
        return std::nullopt;
    }

    std::optional<Sum> separate_binary(const Expr& e, const Binary& b) {
        if (b.op == BinaryOp::add || b.op == BinaryOp::sub) {
            const auto x = separate(b.a);
            if (!x) return std::nullopt;
            const auto y = separate(b.b);
            if (!y) return std::nullopt;
            const bool subtract = b.op == BinaryOp::sub;
            const auto join = [&](const Expr& p, const Expr& q) {
                if (!q) return p;
                if (!p) return subtract ? negated(q) : q;
                return simplify(binary(subtract ? BinaryOp::sub : BinaryOp::add, p, q));
            };
            return Sum{join(x->a, y->a), join(x->b, y->b)};
        }
        if (b.op == BinaryOp::mul || b.op == BinaryOp::div) {
            // Distributes over the sum when the other factor is of one kind with each part, e.g. (S − μ)·c.
            const bool left = b.op == BinaryOp::mul && !runs(b.a) && !streams(b.a);
            const Expr& factor = left ? b.a : b.b;
            if (!runs(factor) && !streams(factor)) {
                const auto inner = separate(left ? b.b : b.a);
                if (!inner) return std::nullopt;
                const auto scale = [&](const Expr& p) {
                    return p ? simplify(binary(b.op, left ? factor : p, left ? p : factor)) : p;
                };
                return Sum{scale(inner->a), scale(inner->b)};
            }
        }
        fail("it is not a sum of a part of the stream and a part of the running results", e);
        return std::nullopt;
    }

    std::optional<std::vector<Term>> split_select(const Expr& e, const Select& s) {
        if (runs(s.condition)) return fail("the condition depends on a running result", s.condition);
        auto x = split(s.a);
        if (!x) return std::nullopt;
        auto y = split(s.b);
        if (!y) return std::nullopt;
        std::vector<Term> out;
        const auto is_zero = [](const Term& t) {
            const auto* c = t.tail ? as<Constant>(t.tail) : t.body ? as<Constant>(t.body) : nullptr;
            return c && c->value == 0;
        };
        // A constant stays in its branch: behind the sum an infinite one would meet the other branch's 0.
        const auto branch = [](Term t) {
            if (!t.body && t.power == 0 && t.tail && as<Constant>(t.tail)) std::swap(t.body, t.tail);
            return t;
        };
        for (auto t : *x) {
            if (is_zero(t)) continue;
            t = branch(t);
            t.body = select(s.condition, or_one(t.body), constant(0));
            out.push_back(t);
        }
        for (auto t : *y) {
            if (is_zero(t)) continue;
            t = branch(t);
            t.body = select(s.condition, constant(0), or_one(t.body));
            out.push_back(t);
        }
        if (out.empty() || out.size() > max_terms) return fail("it expands into too many separable terms", e);
        return out;
    }

    std::optional<std::vector<Term>> split_cast(const Expr& e, const Cast& c) {
        if (!is_float(c.type)) return fail("a cast to an integer does not distribute", e);
        auto terms = split(c.a);
        if (!terms) return std::nullopt;
        if (terms->size() != 1 || (*terms)[0].power != 0)
            return fail("a cast of a sum of stream and running result does not distribute", e);
        note("a cast commutes with a factor up to one rounding");
        Term& t = (*terms)[0];
        if (t.body) t.body = cast(c.type, t.body);
        return terms;
    }
};

std::variant<Factored, FactorFailure> factor_additive(ReduceOp op, Factoring& f, const Expr& body,
                                                      const FactorOptions& options) {
    if (const auto sum = f.separate(body)) {
        Factored out;
        Term t;
        t.body = sum->a ? sum->a : constant(0);
        t.tail = sum->b;
        out.terms = {t};
        out.additive_tail = true;
        out.conditions = {std::string(name(op)) + " distributes over +"};
        return out;
    }
    const FactorFailure additive = f.failure;
    f.failure = {};
    auto terms = f.split(body);
    if (!terms || terms->size() != 1 || (*terms)[0].power != 0) return additive;
    const Term& t = (*terms)[0];
    if (t.tail && !options.positive(t.tail))
        return FactorFailure{"a factor under max or min must be provably positive", t.tail};
    Factored out;
    out.terms = *terms;
    if (!out.terms[0].body) out.terms[0].body = constant(1);
    out.conditions = f.conditions;
    out.conditions.push_back(std::string(name(op)) + " distributes over × by a positive factor");
    return out;
}

}  // namespace

std::variant<Factored, FactorFailure> factor(ReduceOp op, const Expr& body, const Leaves& leaves,
                                             const FactorOptions& options) {
    Factoring f(leaves, options);
    Factored out;
    if (!f.runs(body) && op != ReduceOp::sum) {
        Term t;
        t.body = body;
        out.terms = {t};
        out.additive_tail = op == ReduceOp::max || op == ReduceOp::min;
        out.power_tail = op == ReduceOp::prod;
        return out;
    }
    if (op == ReduceOp::max || op == ReduceOp::min) return factor_additive(op, f, body, options);

    auto terms = f.split(body);
    if (!terms) return f.failure;
    if (op == ReduceOp::prod) {
        if (terms->size() != 1 || (*terms)[0].power != 0 || (*terms)[0].log_kept)
            return FactorFailure{"only a factor moves out of a product", body};
        out.power_tail = true;
    }
    out.terms = std::move(*terms);
    for (auto& t : out.terms) {
        if (!t.body) t.body = constant(1);
        if (!options.keep_tails || !t.tail || t.power != 0 || out.terms.size() != 1 || op != ReduceOp::sum) continue;
        // Only the reciprocal of a positive sum can be corrected from the first step on: κ/κ′ = z′/z.
        const auto* quotient = as<Binary>(t.tail);
        const auto* one = quotient && quotient->op == BinaryOp::div ? as<Constant>(quotient->a) : nullptr;
        const auto* z = one && one->value == 1 ? as<Read>(quotient->b) : nullptr;
        if (!z || !leaves.is_running_sum(*z) || !options.positive(quotient->b)) continue;
        t.kept = t.tail;
        t.body = simplify(binary(BinaryOp::mul, t.body, t.tail));
        t.tail = nullptr;
    }
    out.centres = std::move(f.centres);
    out.conditions = std::move(f.conditions);
    if (op == ReduceOp::sum) out.conditions.insert(out.conditions.begin(), "sum distributes over ×");
    return out;
}

}  // namespace napkin
