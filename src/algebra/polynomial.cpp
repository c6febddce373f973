#include "algebra/polynomial.hpp"

#include <cmath>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr std::size_t max_monomials = 64;  // a longer sum is an atom under further operations

using Powers = std::vector<std::pair<Expr, double>>;

/// An order of distinct atoms: by hash, and those of one hash by their text, which no two of them share.
bool before(const Expr& a, const Expr& b) {
    if (a->hash != b->hash || equal(a, b)) return a->hash < b->hash;
    const ExprNames names{[](AxisId id) { return std::to_string(id); },
                          [](ArrayId id) { return "#" + std::to_string(id); }};
    return to_string(a, names) < to_string(b, names);
}

bool before(const Powers& a, const Powers& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return before(x.first, y.first) || (equal(x.first, y.first) && x.second < y.second);
    });
}

bool same(const Powers& a, const Powers& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return x.second == y.second && equal(x.first, y.first); });
}

Powers multiplied(const Powers& a, const Powers& b, double sign) {
    Powers out;
    auto i = a.begin();
    auto j = b.begin();
    while (i != a.end() || j != b.end()) {
        if (j == b.end() || (i != a.end() && before(i->first, j->first))) {
            out.push_back(*i++);
        } else if (i == a.end() || before(j->first, i->first)) {
            out.emplace_back(j->first, sign * j->second);
            ++j;
        } else {
            if (const double power = i->second + sign * j->second; power != 0) out.emplace_back(i->first, power);
            ++i;
            ++j;
        }
    }
    return out;
}

Polynomial number(double value) { return value == 0 ? Polynomial{} : Polynomial{{value, {}}}; }
Polynomial atom(const Expr& e, double power = 1) { return {{1, {{e, power}}}}; }

/// Sorted, equal atoms joined.
Polynomial collected(Polynomial p) {
    sort(p, [](const AtomProduct& a, const AtomProduct& b) { return before(a.powers, b.powers); });
    Polynomial out;
    for (auto& m : p) {
        if (!out.empty() && same(out.back().powers, m.powers)) {
            out.back().coefficient += m.coefficient;
        } else {
            out.push_back(std::move(m));
        }
    }
    std::erase_if(out, [](const AtomProduct& m) { return m.coefficient == 0; });
    return out;
}

/// As one factor: a sum is an atom.
Polynomial factor(const Polynomial& p) { return p.size() <= 1 ? p : atom(to_expr(p)); }

Polynomial power(const Polynomial& base, double exponent) {
    if (exponent == 0) return number(1);
    if (base.empty()) return exponent > 0 ? Polynomial{} : atom(constant(std::pow(0.0, exponent)));
    const Polynomial p = factor(base);
    const AtomProduct& m = p.front();
    // The root of a product is the product of roots only for factors that are not negative; an even power undone would
    // lose a sign.
    const bool whole = exponent == std::floor(exponent);
    const bool single = m.coefficient == 1 && m.powers.size() == 1 && m.powers[0].second == 1;
    if (!whole && !single) {
        if (m.powers.empty() && m.coefficient > 0) return number(std::pow(m.coefficient, exponent));
        return atom(to_expr(p), exponent);
    }
    AtomProduct out{std::pow(m.coefficient, exponent), m.powers};
    for (auto& entry : out.powers) entry.second *= exponent;
    return {out};
}

class Normaliser {
public:
    Polynomial of(const Expr& e) {
        for_each_postorder(e, [&](const Expr& node) {
            if (!done_.contains(node.get())) done_.emplace(node.get(), compute(node));
        });
        return done_.at(e.get());
    }

private:
    std::unordered_map<const ExprNode*, Polynomial> done_;

    [[nodiscard]] const Polynomial& child(const Expr& e) const { return done_.at(e.get()); }

    Polynomial compute(const Expr& e) const {
        if (const auto* c = as<Constant>(e)) return std::isfinite(c->value) ? number(c->value) : atom(e);
        if (const auto* u = as<Unary>(e)) {
            if (u->op == UnaryOp::neg) return -child(u->a);
            if (u->op == UnaryOp::sqrt) return power(child(u->a), 0.5);
            if (u->op == UnaryOp::rsqrt) return power(child(u->a), -0.5);
        }
        if (const auto* b = as<Binary>(e)) {
            const Polynomial& x = child(b->a);
            const Polynomial& y = child(b->b);
            if (b->op == BinaryOp::add && x.size() + y.size() <= max_monomials) return x + y;
            if (b->op == BinaryOp::sub && x.size() + y.size() <= max_monomials) return x + (-y);
            if (b->op == BinaryOp::mul) return x.size() > 1 && y.size() > 1 ? factor(x) * factor(y) : x * y;
            if (b->op == BinaryOp::div && !y.empty()) return x * power(y, -1);
            if (b->op == BinaryOp::pow)
                if (const auto* c = as<Constant>(b->b); c && std::isfinite(c->value)) return power(x, c->value);
        }
        auto parts = children(e);
        if (parts.empty()) return atom(e);
        for (auto& part : parts) part = to_expr(child(part));
        return atom(with_children(e, std::move(parts)));
    }
};

Expr product(const Powers& powers, double coefficient, bool above) {
    Expr out;
    const auto take = [&](const Expr& f) { out = out ? binary(BinaryOp::mul, out, f) : f; };
    if (above && coefficient != 1) take(constant(coefficient));
    for (const auto& [e, power] : powers) {
        if ((power > 0) != above) continue;
        const double exponent = std::abs(power);
        take(exponent == 1 ? e : binary(BinaryOp::pow, e, constant(exponent)));
    }
    return out;
}

}  // namespace

Polynomial polynomial(const Expr& e) { return Normaliser().of(e); }

Polynomial operator+(const Polynomial& a, const Polynomial& b) {
    Polynomial all = a;
    append(all, b);
    return collected(std::move(all));
}

Polynomial operator-(const Polynomial& a) {
    Polynomial out = a;
    for (auto& m : out) m.coefficient = -m.coefficient;
    return out;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
    Polynomial out;
    for (const auto& x : a)
        for (const auto& y : b) out.push_back({x.coefficient * y.coefficient, multiplied(x.powers, y.powers, 1)});
    return collected(std::move(out));
}

std::optional<Polynomial> quotient(const Polynomial& a, const Polynomial& b) {
    if (b.size() != 1) return std::nullopt;
    Polynomial out;
    for (const auto& m : a) out.push_back({m.coefficient / b[0].coefficient, multiplied(m.powers, b[0].powers, -1)});
    return collected(std::move(out));
}

bool operator==(const AtomProduct& a, const AtomProduct& b) {
    const double scale = std::max(std::abs(a.coefficient), std::abs(b.coefficient));
    return std::abs(a.coefficient - b.coefficient) <= 1e-14 * scale && same(a.powers, b.powers);
}

Expr to_expr(const Polynomial& p) {
    Expr out;
    for (const bool negative : {false, true}) {
        for (const auto& m : p) {
            if ((m.coefficient < 0) != negative) continue;
            Expr e = product(m.powers, std::abs(m.coefficient), true);
            if (const Expr below = product(m.powers, 1, false)) e = binary(BinaryOp::div, e ? e : constant(1), below);
            if (!e) e = constant(1);
            out = out        ? binary(negative ? BinaryOp::sub : BinaryOp::add, out, e)
                  : negative ? unary(UnaryOp::neg, e)
                             : e;
        }
    }
    return out ? out : constant(0);
}

bool equal_over_reals(const Expr& a, const Expr& b) { return equal(a, b) || polynomial(a) == polynomial(b); }

}  // namespace napkin
