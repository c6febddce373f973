#include "cost/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "support/result.hpp"

namespace napkin {
namespace {

Size one_term(const Monomial& monomial, Rational coefficient = 1) {
    Size term = coefficient;
    for (const auto& [symbol, exponent] : monomial) term *= Size::symbol(symbol, exponent);
    return term;
}

Rational exponent_of(const Monomial& monomial, const std::string& symbol) {
    const auto found = monomial.find(symbol);
    return found == monomial.end() ? Rational(0) : found->second;
}

/// The size as Σ coefficient·(product of the given symbols): by that product.
std::map<Monomial, Size> by_factors(const Size& size, const std::vector<std::string>& symbols) {
    std::map<Monomial, Size> parts;
    for (const auto& [monomial, coefficient] : size.terms()) {
        Monomial inside, outside;
        for (const auto& [symbol, exponent] : monomial)
            (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end() ? outside : inside).emplace(symbol, exponent);
        parts[inside] += one_term(outside, coefficient);
    }
    return parts;
}

/// value^exponent when that is rational.
std::optional<Rational> exact_power(Rational value, Rational exponent) {
    const auto root = [](std::int64_t n, std::int64_t degree) -> std::optional<std::int64_t> {
        const auto r = static_cast<std::int64_t>(
            std::llround(std::pow(static_cast<double>(n), 1.0 / static_cast<double>(degree))));
        std::int64_t product = 1;
        for (std::int64_t i = 0; i < degree; ++i)
            if (__builtin_mul_overflow(product, r, &product)) return std::nullopt;
        return product == n ? std::optional(r) : std::nullopt;
    };
    if (!(value > Rational(0)) || exponent.denominator() > 16 || std::abs(exponent.numerator()) > 16)
        return std::nullopt;
    const auto n = root(value.numerator(), exponent.denominator()), d = root(value.denominator(), exponent.denominator());
    if (!n || !d) return std::nullopt;
    Rational result = 1;
    for (std::int64_t i = 0; i < std::abs(exponent.numerator()); ++i) result = result * Rational(*n, *d);
    return exponent < Rational(0) ? Rational(1) / result : result;
}

/// size^exponent when it is a size expression: one term with a rational root of its coefficient, or a whole power of a sum.
std::optional<Size> power(const Size& size, Rational exponent) {
    if (size.terms().size() != 1) return size.pow(exponent);
    const auto& [monomial, coefficient] = *size.terms().begin();
    const auto c = exact_power(coefficient, exponent);
    const auto rest = one_term(monomial).pow(exponent);
    return c && rest ? std::optional(*rest * Size(*c)) : std::nullopt;
}

/// One term with its negative powers under a fraction bar: "M/(2·d)".
std::string as_fraction(const Size& size) {
    const auto& [monomial, coefficient] = *size.terms().begin();
    Size above = coefficient.numerator(), below = coefficient.denominator();
    for (const auto& [symbol, exponent] : monomial)
        exponent > Rational(0) ? above *= Size::symbol(symbol, exponent)
                               : below *= Size::symbol(symbol, Rational(0) - exponent);
    if (below == Size(1)) return to_string(above);
    const std::string text = to_string(below);
    return to_string(above) + (text.find("·") == std::string::npos ? "/" + text : "/(" + text + ")");
}

/// Solves rows·x = right exactly; nullopt when there is no single solution.
std::optional<std::vector<Rational>> solve(std::vector<std::vector<Rational>> rows, std::vector<Rational> right) {
    const std::size_t unknowns = rows.empty() ? 0 : rows[0].size();
    std::size_t rank = 0;
    for (std::size_t column = 0; column < unknowns; ++column) {
        std::size_t pivot = rank;
        while (pivot < rows.size() && rows[pivot][column] == Rational(0)) ++pivot;
        if (pivot == rows.size()) return std::nullopt;
        std::swap(rows[pivot], rows[rank]), std::swap(right[pivot], right[rank]);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            if (r == rank || rows[r][column] == Rational(0)) continue;
            const Rational factor = rows[r][column] / rows[rank][column];
            for (std::size_t c = column; c < unknowns; ++c) rows[r][c] = rows[r][c] - factor * rows[rank][c];
            right[r] = right[r] - factor * right[rank];
        }
        ++rank;
    }
    for (std::size_t r = rank; r < rows.size(); ++r)
        if (right[r] != Rational(0)) return std::nullopt;
    std::vector<Rational> x;
    for (std::size_t r = 0; r < unknowns; ++r) x.push_back(right[r] / rows[r][r]);
    return x;
}

/// What a group maintains at large sizes: the largest column without its streamed parts; columns of the loops where there are loops.
Size maintained_memory(const KernelCost& cost) {
    const bool streams = std::any_of(cost.memory.begin(), cost.memory.end(),
                                     [](const MemoryColumn& c) { return c.in_loop; });
    std::vector<Size> candidates;
    for (const MemoryColumn& column : cost.memory) {
        if (streams && !column.in_loop) continue;
        Size kept;
        for (const auto& [monomial, coefficient] : column.size.terms()) {
            const bool streamed = std::any_of(monomial.begin(), monomial.end(),
                                              [](const auto& part) { return part.first.starts_with("s_"); });
            if (!streamed) kept += one_term(monomial, coefficient);
        }
        candidates.push_back(leading_terms(kept));
    }
    Size largest;
    for (const Size& candidate : candidates)
        if (never_above(largest, candidate)) largest = candidate;
    return largest;
}

/// The geometric program of a kernel and its solution, step by step.
class Solver {
public:
    explicit Solver(const KernelCost& cost) {
        for (const auto& [monomial, coefficient] : cost.num_groups.terms())
            for (const auto& [symbol, exponent] : monomial)
                if (exponent < Rational(0)) groups_.push_back(symbol);
        out_.transfers = cost.transfers;
        out_.memory = maintained_memory(cost);
    }

    Optimum run() {
        if (auto failure = solve_program()) {
            out_.why_not = *failure;
            out_.at.clear();
        } else {
            out_.closed = true;
        }
        return std::move(out_);
    }

private:
    /// Fixes a group size that costs memory and saves no transfers at 1, and one that costs no memory at its whole axis.
    void settle_free_groups() {
        const auto terms = by_factors(out_.transfers, groups_);
        const auto columns = by_factors(out_.memory, groups_);
        std::vector<std::string> left;
        for (const std::string& g : groups_) {
            const auto has = [&](const auto& parts) {
                return std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.first.contains(g); });
            };
            const bool saves = has(terms), costs = has(columns);
            if (saves && costs) {
                left.push_back(g);
                continue;
            }
            const Size value = saves ? Size::symbol(g.substr(2)) : Size(1);
            transfers_ = transfers_.substitute(g, value);
            memory_ = memory_.substitute(g, value);
            if (saves || costs) out_.at.push_back(g + " = " + to_string(value));
        }
        groups_ = left;
    }

    /// Returns why there is no closed form, or nothing when out_ holds it.
    std::optional<std::string> solve_program() {
        transfers_ = out_.transfers, memory_ = out_.memory;
        settle_free_groups();
        if (groups_.empty()) {
            out_.transfers = transfers_;
            return std::nullopt;
        }
        const auto columns = by_factors(memory_, groups_);
        if (columns.size() != 1) return "M is not a single product of group sizes";
        const auto& [product, y] = *columns.begin();

        Size fixed;
        std::vector<std::pair<Monomial, Size>> terms;
        for (const auto& [monomial, alpha] : by_factors(transfers_, groups_)) {
            for (const std::string& symbol : alpha.symbols())
                if (symbol.starts_with("s_")) return "H depends on the stream size " + symbol;
            if (monomial.empty()) {
                fixed = alpha;
                continue;
            }
            for (const auto& [symbol, exponent] : monomial)
                if (exponent > Rational(0)) return "H grows with " + symbol;
            terms.emplace_back(monomial, alpha);
        }
        if (auto transfers = powers_of(product, y, terms)) {
            out_.transfers = *transfers + fixed;
            describe_product(product, y);
            return std::nullopt;
        }
        return balance(product, y, terms, fixed);
    }

    /// Every term a power of the one product that memory limits: P = M/y.
    std::optional<Size> powers_of(const Monomial& product, const Size& y,
                                  const std::vector<std::pair<Monomial, Size>>& terms) const {
        Size total;
        for (const auto& [monomial, alpha] : terms) {
            const Rational beta = Rational(0) - exponent_of(monomial, groups_[0]) / exponent_of(product, groups_[0]);
            for (const std::string& g : groups_)
                if (exponent_of(monomial, g) != Rational(0) - beta * exponent_of(product, g)) return std::nullopt;
            const auto limit = power(y, beta);
            if (!limit) return std::nullopt;
            total += alpha * *limit * Size::symbol("M", Rational(0) - beta);
        }
        return total;
    }

    void describe_product(const Monomial& product, const Size& y) {
        if (product.size() == 1) {
            const auto& [g, exponent] = *product.begin();
            if (y.terms().size() == 1)
                if (const auto value = power(Size::symbol("M") / y, Rational(1) / exponent)) {
                    out_.at.push_back(g + " = " + as_fraction(*value));
                    return;
                }
        }
        const bool sum = y.terms().size() > 1;
        out_.at.push_back(to_string(one_term(product)) + " = " +
                          (sum ? "M/(" + to_string(y) + ")" : as_fraction(Size::symbol("M") / y)));
    }

    /// As many terms as group sizes: at the optimum each term has a fixed share w_t of their sum, whatever the sizes are.
    std::optional<std::string> balance(const Monomial& product, const Size& y,
                                       const std::vector<std::pair<Monomial, Size>>& terms, const Size& fixed) {
        if (terms.size() != groups_.size())
            return std::to_string(terms.size()) + " terms in H for " + std::to_string(groups_.size()) + " group sizes";
        // Unknowns: the shares w_t and λ, with Σ_t w_t·B_ti = λ·e_i for every group size i, and Σ w_t = 1.
        std::vector<std::vector<Rational>> rows;
        std::vector<Rational> right;
        for (const std::string& g : groups_) {
            std::vector<Rational> row;
            for (const auto& [monomial, alpha] : terms) row.push_back(Rational(0) - exponent_of(monomial, g));
            row.push_back(Rational(0) - exponent_of(product, g));
            rows.push_back(std::move(row));
            right.emplace_back(0);
        }
        rows.emplace_back(terms.size(), Rational(1));
        rows.back().emplace_back(0);
        right.emplace_back(1);
        const auto shares = solve(rows, right);
        if (!shares) return "the terms of H do not balance at one point";
        const Rational lambda = shares->back();

        const auto limit = power(y, lambda);
        if (!limit) return "M's factor is a sum under a root";
        Size sum = *limit * Size::symbol("M", Rational(0) - lambda);
        Rational raised = 1;  // Π (α_t's coefficient / w_t)^(w_t·D), with D the common denominator of the shares
        std::int64_t common = 1;
        for (std::size_t t = 0; t < terms.size(); ++t) {
            const Rational w = (*shares)[t];
            if (!(w > Rational(0))) return "the optimum lies where a group is a whole axis";
            common = std::lcm(common, w.denominator());
        }
        if (common > 8) return "its coefficients are not rational";
        for (std::size_t t = 0; t < terms.size(); ++t) {
            const Rational w = (*shares)[t];
            const Size alpha = leading_terms(terms[t].second);
            if (alpha.terms().size() != 1) return "a coefficient of H is a sum under a root";
            const auto& [monomial, coefficient] = *alpha.terms().begin();
            const auto part = one_term(monomial).pow(w);
            const auto factor = exact_power(coefficient / w, w * Rational(common));
            if (!part || !factor) return "its coefficients are not rational";
            sum *= *part;
            raised = raised * *factor;
        }
        const auto coefficient = exact_power(raised, Rational(1, common));
        if (!coefficient) return "its coefficients are not rational";
        sum *= Size(*coefficient);
        out_.transfers = sum + fixed;
        describe_balance(terms, *shares, sum);
        return std::nullopt;
    }

    /// The group sizes from term_t = w_t·sum: linear in the exponents.
    void describe_balance(const std::vector<std::pair<Monomial, Size>>& terms, const std::vector<Rational>& shares,
                          const Size& sum) {
        const std::size_t n = groups_.size();
        for (std::size_t i = 0; i < n; ++i) {
            // Row i of B⁻¹: Σ_t r_t·B_tj = [i = j], so that g_i = Π_t (α_t / (w_t·sum))^r_t.
            std::vector<std::vector<Rational>> rows(n);
            std::vector<Rational> right(n, Rational(0));
            for (std::size_t j = 0; j < n; ++j)
                for (const auto& [monomial, alpha] : terms)
                    rows[j].push_back(Rational(0) - exponent_of(monomial, groups_[j]));
            right[i] = 1;
            const auto r = solve(rows, right);
            if (!r) return;
            Size value = 1;
            for (std::size_t t = 0; t < n; ++t) {
                const auto factor = power(leading_terms(terms[t].second) / (sum * Size(shares[t])), (*r)[t]);
                if (!factor) return;
                value *= *factor;
            }
            out_.at.push_back(groups_[i] + " = " + as_fraction(value));
        }
    }

    std::vector<std::string> groups_;  ///< group sizes still to be chosen
    Size transfers_, memory_;
    Optimum out_;
};

}  // namespace

Optimum optimum(const KernelCost& cost) { return Solver(cost).run(); }

}  // namespace napkin
