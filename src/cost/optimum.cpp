#include "cost/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "cost/linear.hpp"
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
            (!contains(symbols, symbol) ? outside : inside).emplace(symbol, exponent);
        parts[inside] += one_term(outside, coefficient);
    }
    std::erase_if(parts, [](const auto& part) { return part.second.is_zero(); });
    return parts;
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
    // A sum that one symbol stands for brings its parentheses.
    const bool bare = text.find("·") == std::string::npos || below == Size::symbol(text);
    return to_string(above) + (bare ? "/" + text : "/(" + text + ")");
}

/// At stream sizes of 1.
Size without_streams(const Size& size) {
    Size result;
    for (const auto& [monomial, coefficient] : size.terms()) {
        Monomial rest = monomial;
        std::erase_if(rest, [](const auto& part) { return part.first.starts_with("s_"); });
        result += one_term(rest, coefficient);
    }
    return result;
}

/// a's group sizes are among b's with at least their powers, and not the other way round.
bool lower_order(const Monomial& a, const Monomial& b) {
    if (a == b) return false;
    return std::all_of(a.begin(), a.end(), [&](const auto& part) { return exponent_of(b, part.first) >= part.second; });
}

/// What is asked of the solver beside the cost.
struct Question {
    std::set<std::string> whole, single;  ///< axes whose group size is the whole axis, or 1
    bool large_axes = true;               ///< of the coefficients in M only the terms largest in the axes' sizes
    std::optional<std::size_t> column;    ///< the column of M that limits; none: the one that always does
};

/// The minimum over the group sizes, order by order.
class Solver {
public:
    Solver(const KernelCost& cost, Question question) : question_(std::move(question)), transfers_(cost.transfers) {
        out_.transfers = cost.transfers;
        for (const auto& [monomial, coefficient] : cost.num_groups.terms())
            for (const auto& [symbol, exponent] : monomial)
                if (exponent < Rational(0)) groups_.push_back(symbol);
        for (const MemoryColumn& column : cost.memory) {
            columns_.push_back(without_streams(column.size));
            in_loop_.push_back(column.in_loop);
        }
        for (const std::string& axis : question_.whole) fix("g_" + axis, Size::symbol(axis), axis + ", its whole axis");
        for (const std::string& axis : question_.single) fix("g_" + axis, Size(1), "1");
    }

    Optimum run() {
        if (auto failure = solve_program()) {
            out_.why_not = *failure;
            out_.at.clear();
            out_.groups.clear();
        } else {
            out_.closed = true;
        }
        return std::move(out_);
    }

private:
    struct Term {
        Row powers;  ///< B_t: of 1/g, by groups_
        Size value;  ///< c_t, one term
    };

    void fix(const std::string& group, const Size& value, const std::string& text) {
        const auto at = std::find(groups_.begin(), groups_.end(), group);
        if (at == groups_.end()) return;
        transfers_ = transfers_.substitute(group, value);
        for (Size& column : columns_) column = column.substitute(group, value);
        groups_.erase(at);
        out_.groups.push_back({{{group, Rational(1)}}, value});
        if (!text.empty()) out_.at.push_back(group + " = " + text);
    }

    /// Fixes a group size that costs memory and saves no transfers at 1, and one that costs no memory at its whole axis.
    bool settle_free_groups() {
        for (bool again = true; again;) {
            again = false;
            const auto terms = by_factors(transfers_, groups_);
            const auto memory = by_factors(out_.memory, groups_);
            for (const std::string& g : groups_) {
                const bool saves = std::any_of(terms.begin(), terms.end(), [&](const auto& part) {
                    return exponent_of(part.first, g) < Rational(0);
                });
                const bool costs = std::any_of(memory.begin(), memory.end(),
                                               [&](const auto& part) { return part.first.contains(g); });
                if (saves && costs) continue;
                const std::string free = g;
                const Size value = saves ? Size::symbol(free.substr(2)) : Size(1);
                fix(free, value, saves || costs ? to_string(value) : "");
                if (!find_memory()) return false;
                again = true;
                break;
            }
        }
        return true;
    }

    /// What of a column counts at large M: the terms of highest order in the group sizes.
    [[nodiscard]] Size maintained(const Size& column) const {
        const auto parts = by_factors(column, groups_);
        Size sum;
        for (const auto& [product, coefficient] : parts) {
            const bool below = std::any_of(parts.begin(), parts.end(),
                                           [&, &p = product](const auto& other) { return lower_order(p, other.first); });
            if (!below) sum += one_term(product) * (question_.large_axes ? leading_terms(coefficient) : coefficient);
        }
        return sum;
    }

    /// The column that limits: it is never below another one. A loop's columns come before those of its head and tail, which then are
    /// conditions.
    bool find_memory() {
        out_.memory = neglected_ = {};
        at_most_memory_.clear();
        std::vector<Size> kept;
        for (const Size& column : columns_) kept.push_back(maintained(column));
        if (question_.column) {
            out_.memory = kept[*question_.column];
            neglected_ = columns_[*question_.column] - out_.memory;
            return true;
        }
        for (const bool only_loops : {false, true})
            for (std::size_t i = 0; i < kept.size(); ++i) {
                if (only_loops && !in_loop_[i]) continue;
                std::vector<std::size_t> above;
                for (std::size_t j = 0; j < kept.size(); ++j)
                    if (!never_above(kept[j], kept[i])) above.push_back(j);
                const auto in_loop = [&](std::size_t j) { return in_loop_[j]; };
                if (only_loops ? std::any_of(above.begin(), above.end(), in_loop) : !above.empty()) continue;
                out_.memory = kept[i];
                neglected_ = columns_[i] - kept[i];
                for (const std::size_t j : above) at_most_memory_.push_back(kept[j]);
                return true;
            }
        return kept.empty();
    }

    /// Returns why there is no closed form, or nothing when out_ holds it.
    std::optional<std::string> solve_program() {
        if (!find_memory() || !settle_free_groups()) return "none of the columns of M is always the largest";
        std::vector<Term> terms;
        Size fixed;
        for (const auto& [monomial, coefficient] : by_factors(transfers_, groups_)) {
            for (const std::string& symbol : coefficient.symbols())
                if (symbol.starts_with("s_")) return "H depends on the stream size " + symbol;
            if (monomial.empty()) {
                fixed = coefficient;
                continue;
            }
            for (const auto& [symbol, exponent] : monomial)
                if (exponent > Rational(0)) return "H grows with " + symbol;
            if (std::any_of(coefficient.terms().begin(), coefficient.terms().end(),
                            [](const auto& term) { return term.second < Rational(0); }) &&
                coefficient.terms().size() == 1)
                return "a term of H is negative";
            terms.push_back({powers(monomial, true), as_one_term(coefficient)});
        }
        Size sum = fixed;
        while (true) {
            take_determined(terms, sum);
            if (terms.empty()) break;
            if (auto failure = next_order(terms, sum)) return failure;
            if (finite_.empty()) continue;
            // A group size that stays finite is 1, and what it multiplies may be of another order then: from the start.
            for (const std::string& group : std::exchange(finite_, {})) fix(group, Size(1), "1");
            rows_.clear(), values_.clear();
            return solve_program();
        }
        out_.transfers = expanded(sum);
        describe();
        return std::nullopt;
    }

    [[nodiscard]] Row powers(const Monomial& monomial, bool inverse) const {
        Row row;
        for (const std::string& g : groups_)
            row.push_back(inverse ? Rational(0) - exponent_of(monomial, g) : exponent_of(monomial, g));
        return row;
    }

    /// The size as one term: a sum becomes its common factor times a symbol that stands for the rest.
    Size as_one_term(const Size& size) {
        if (size.terms().size() == 1) return size;
        Monomial common = size.terms().begin()->first;
        for (const auto& [monomial, coefficient] : size.terms())
            for (auto& [symbol, exponent] : common) exponent = std::min(exponent, exponent_of(monomial, symbol));
        std::erase_if(common, [](const auto& part) { return part.second <= Rational(0); });
        const Size rest = size / one_term(common);
        const std::string name = "(" + to_string(rest) + ")";
        out_.sums.emplace(name, rest);
        return one_term(common) * Size::symbol(name);
    }

    /// With the sums that stand under no root written out.
    Size expanded(const Size& size) {
        Size result;
        for (const auto& [monomial, coefficient] : size.terms()) {
            Size term = coefficient;
            for (const auto& [symbol, exponent] : monomial) {
                const auto sum = out_.sums.find(symbol);
                const auto written = sum == out_.sums.end() ? std::nullopt : sum->second.pow(exponent);
                term *= written ? *written : Size::symbol(symbol, exponent);
            }
            result += term;
        }
        return result;
    }

    /// Adds to H the terms that the equations at hand determine, and takes them off the list.
    void take_determined(std::vector<Term>& terms, Size& sum) const {
        std::erase_if(terms, [&](const Term& term) {
            const auto parts = combination(rows_, term.powers);
            if (!parts) return false;
            Size value = term.value;
            for (std::size_t i = 0; i < parts->size(); ++i) value *= *values_[i].pow(Rational(0) - (*parts)[i]);
            sum += value;
            return true;
        });
    }

    void add_equation(Row row, Size value) {
        if (combination(rows_, row)) return;
        rows_.push_back(std::move(row));
        values_.push_back(std::move(value));
    }

    /// The power of M in a value.
    static Rational order(const Size& value) { return exponent_of(value.terms().begin()->first, "M"); }

    /// The leading terms among those that are left: adds their sum to H and the equations that they give.
    std::optional<std::string> next_order(std::vector<Term>& terms, Size& sum) {
        const std::size_t n = groups_.size();
        const auto columns = by_factors(out_.memory, groups_);
        const bool first = rows_.empty();
        // Unknowns: γ by group size, and θ, the order that no term falls below.
        Polyhedron p;
        p.dimensions = n + 1;
        std::vector<std::pair<Row, Size>> memory;
        if (first)
            for (const auto& [product, y] : columns) memory.emplace_back(powers(product, false), as_one_term(y));
        for (const auto& [row, y] : memory) {
            p.at_most.push_back(row);
            p.at_most.back().emplace_back(0);
            p.at_most_right.emplace_back(1);
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            p.equal.push_back(rows_[i]);
            p.equal.back().emplace_back(0);
            p.equal_right.push_back(order(values_[i]));
        }
        for (const Term& term : terms) {
            Row row;
            for (const Rational& power : term.powers) row.push_back(Rational(0) - power);
            row.emplace_back(1);
            p.at_most.push_back(std::move(row));
            p.at_most_right.emplace_back(0);
        }
        Row objective(n + 1, Rational(0));
        objective[n] = 1;
        const std::vector<Row> corners = best_corners(p, objective);
        if (corners.empty()) return "too many group sizes and terms";
        const auto always = [&](auto condition) { return std::all_of(corners.begin(), corners.end(), condition); };
        const auto order_of = [&](const Row& powers, const Row& corner) {
            Rational total = 0;
            for (std::size_t i = 0; i < n; ++i) total = total + powers[i] * corner[i];
            return total;
        };

        std::vector<Term> leading, rest;
        for (const Term& term : terms)
            (always([&](const Row& c) { return order_of(term.powers, c) == c[n]; }) ? leading : rest).push_back(term);
        std::vector<std::pair<Row, Size>> active;
        for (const auto& entry : memory)
            if (always([&](const Row& c) { return order_of(entry.first, c) == Rational(1); })) active.push_back(entry);
        for (std::size_t i = 0; i < n; ++i)
            if (always([&](const Row& c) { return c[i] == Rational(0); })) finite_.push_back(groups_[i]);
        if (!finite_.empty()) return std::nullopt;
        return first ? balance(leading, active, std::move(rest), terms, sum) : spend(leading, std::move(rest), terms, sum);
    }

    /// The first order: shares w_t and multipliers λ_j.
    std::optional<std::string> balance(const std::vector<Term>& leading, const std::vector<std::pair<Row, Size>>& active,
                                       std::vector<Term> rest, std::vector<Term>& terms, Size& sum) {
        std::vector<Row> rows;
        Row right;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            Row row;
            for (const Term& term : leading) row.push_back(term.powers[i]);
            for (const auto& [powers, y] : active) row.push_back(Rational(0) - powers[i]);
            rows.push_back(std::move(row));
            right.emplace_back(0);
        }
        rows.emplace_back(leading.size(), Rational(1));
        rows.back().resize(leading.size() + active.size(), Rational(0));
        right.emplace_back(1);
        const auto shares = solve(rows, right);
        if (!shares || !all_positive(*shares)) return no_balance(leading.size());
        Rational multipliers = 0;
        for (std::size_t j = 0; j < active.size(); ++j) multipliers = multipliers + (*shares)[leading.size() + j];
        Size total = 1;
        for (std::size_t t = 0; t < leading.size(); ++t)
            total *= *(leading[t].value / Size((*shares)[t])).pow((*shares)[t]);
        for (std::size_t j = 0; j < active.size(); ++j) {
            const Rational lambda = (*shares)[leading.size() + j];
            const Size limit = Size::symbol("M") / active[j].second * Size(lambda / multipliers);
            total *= *limit.pow(Rational(0) - lambda);
            add_equation(active[j].first, limit);
        }
        return keep(leading, *shares, total, std::move(rest), terms, sum);
    }

    /// A later order: shares w_t such that the terms' product is determined by the equations at hand.
    std::optional<std::string> spend(const std::vector<Term>& leading, std::vector<Term> rest, std::vector<Term>& terms,
                                     Size& sum) {
        std::vector<Row> rows;
        Row right;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            Row row;
            for (const Term& term : leading) row.push_back(term.powers[i]);
            for (const Row& equation : rows_) row.push_back(equation[i]);
            rows.push_back(std::move(row));
            right.emplace_back(0);
        }
        rows.emplace_back(leading.size(), Rational(1));
        rows.back().resize(leading.size() + rows_.size(), Rational(0));
        right.emplace_back(1);
        const auto shares = solve(rows, right);
        if (!shares || !all_positive(Row(shares->begin(), shares->begin() + static_cast<std::ptrdiff_t>(leading.size()))))
            return no_balance(leading.size());
        Size total = 1;
        for (std::size_t t = 0; t < leading.size(); ++t)
            total *= *(leading[t].value / Size((*shares)[t])).pow((*shares)[t]);
        for (std::size_t k = 0; k < rows_.size(); ++k) total *= *values_[k].pow((*shares)[leading.size() + k]);
        return keep(leading, *shares, total, std::move(rest), terms, sum);
    }

    std::optional<std::string> keep(const std::vector<Term>& leading, const Row& shares, const Size& total,
                                    std::vector<Term> rest, std::vector<Term>& terms, Size& sum) {
        for (std::size_t t = 0; t < leading.size(); ++t)
            add_equation(leading[t].powers, leading[t].value / (total * Size(shares[t])));
        sum += total;
        terms = std::move(rest);
        return std::nullopt;
    }

    static bool all_positive(const Row& row) {
        return std::all_of(row.begin(), row.end(), [](Rational r) { return r > Rational(0); });
    }
    [[nodiscard]] std::string no_balance(std::size_t num_terms) const {
        return std::to_string(num_terms) + " terms of one order in H for " + std::to_string(groups_.size()) +
               " group sizes";
    }

    /// Group sizes one by one where the equations give them, else the products that they give.
    void describe() {
        std::vector<std::string> open;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            Row row(groups_.size(), Rational(0));
            row[i] = 1;
            const auto parts = combination(rows_, row);
            if (!parts) {
                open.push_back(groups_[i]);
                continue;
            }
            Size value = 1;
            for (std::size_t k = 0; k < parts->size(); ++k) value *= *values_[k].pow((*parts)[k]);
            note({{groups_[i], Rational(1)}}, value);
        }
        for (std::size_t k = 0; k < rows_.size(); ++k) {
            Monomial product;
            bool is_open = false;
            for (std::size_t i = 0; i < groups_.size(); ++i) {
                if (rows_[k][i] == Rational(0)) continue;
                product.emplace(groups_[i], rows_[k][i]);
                is_open |= contains(open, groups_[i]);
            }
            if (is_open) note(product, values_[k]);
        }
        std::vector<std::string> conditions;
        for (const Size& column : at_most_memory_) conditions.push_back(to_string(column) + " ≤ M");
        for (const Size& small : far_below_memory()) conditions.push_back("M ≫ " + as_fraction(small));
        for (std::size_t i = 0; i < conditions.size(); ++i)
            if (std::find(conditions.begin(), conditions.begin() + static_cast<std::ptrdiff_t>(i), conditions[i]) ==
                conditions.begin() + static_cast<std::ptrdiff_t>(i))
                out_.at.push_back((i == 0 ? "where " : "and ") + conditions[i]);
    }

    /// What M leaves out is small once M is large: for a term c·M^β at the optimum, where M ≫ c^(1/(1 - β)). The largest of these c.
    [[nodiscard]] std::vector<Size> far_below_memory() const {
        std::vector<Size> all, largest;
        for (const auto& [product, coefficient] : by_factors(neglected_, groups_)) {
            const auto parts = combination(rows_, powers(product, false));
            if (!parts) continue;
            for (const auto& [monomial, number] : coefficient.terms()) {
                Size term = one_term(monomial, number);
                for (std::size_t k = 0; k < parts->size(); ++k) term *= *values_[k].pow((*parts)[k]);
                const Rational beta = order(term);
                if (!(number > Rational(0)) || !(beta > Rational(0)) || !(beta < Rational(1))) continue;
                const auto small = (term / Size::symbol("M", beta)).pow(Rational(1) / (Rational(1) - beta));
                if (small && !small->as_constant() && !contains(all, *small)) all.push_back(*small);
            }
        }
        for (const Size& small : all)
            if (std::none_of(all.begin(), all.end(),
                             [&](const Size& other) { return !(small == other) && never_above(small, other); }))
                largest.push_back(small);
        return largest;
    }
    void note(const Monomial& product, const Size& value) {
        out_.groups.push_back({product, value});
        out_.at.push_back(to_string(one_term(product)) + " = " + as_fraction(value));
    }

    Question question_;
    std::vector<std::string> groups_;  ///< group sizes still to be chosen
    Size transfers_;
    std::vector<Size> columns_;  ///< of M, at stream sizes of 1
    std::vector<bool> in_loop_;
    Size neglected_;                    ///< what the limiting column holds beside out_.memory
    std::vector<Size> at_most_memory_;  ///< other columns, which the form takes to be below the limiting one
    std::vector<Row> rows_;             ///< equations between the group sizes: Π g^row = value
    std::vector<Size> values_;          ///< one term each
    std::vector<std::string> finite_;   ///< group sizes that were found not to grow with M
    Optimum out_;
};

}  // namespace

std::vector<StandardTerm> Optimum::standard_form() const {
    std::map<Rational, Size> by_beta;
    if (!closed) return {};
    for (const auto& [monomial, coefficient] : transfers.terms()) {
        Monomial rest = monomial;
        rest.erase("M");
        by_beta[Rational(0) - exponent_of(monomial, "M")] += one_term(rest, coefficient);
    }
    std::vector<StandardTerm> terms;
    for (auto& [beta, alpha] : by_beta) terms.push_back({alpha, beta});
    return terms;
}

std::optional<double> Optimum::value(const Size& size, const SymbolValues& of_symbol) const {
    const auto number = size.evaluate([&](const std::string& symbol) {
        const auto sum = sums.find(symbol);
        return sum == sums.end() ? of_symbol(symbol) : sum->second.evaluate(of_symbol);
    });
    return number && std::isfinite(*number) ? number : std::nullopt;
}

Optimum optimum(const KernelCost& cost) { return Solver(cost, {}).run(); }

Optimum optimum_at(const KernelCost& cost, const SymbolValues& value) { return OptimumSolver(cost).at(value); }

const Optimum& OptimumSolver::solved(const Case& question) {
    const auto known = solved_.find(question);
    if (known != solved_.end()) return known->second;
    const auto& [column, whole, single] = question;
    return solved_.emplace(question, Solver(cost_, {whole, single, false, column}).run()).first->second;
}

/// With every group size from 1 to its axis: the one furthest outside is set there, one after the other.
const Optimum& OptimumSolver::clamped(std::size_t column, const SymbolValues& value) {
    std::set<std::string> whole, single;
    while (true) {
        const Optimum& best = solved({column, whole, single});
        if (!best.closed) return best;
        std::string worst;
        double excess = 1 + 1e-12;
        bool too_large = false;
        for (const GroupEquation& group : best.groups) {
            const auto size = best.value(group.value, value);
            double limit = 1;
            std::string axis;
            bool sized = size.has_value();
            for (const auto& [symbol, exponent] : group.product) {
                const std::string name = symbol.substr(2);
                const auto extent = value(name);
                sized = sized && extent && exponent == Rational(1);
                if (axis.empty() && !whole.contains(name) && !single.contains(name)) axis = name;
                limit *= extent.value_or(1);
            }
            if (!sized || axis.empty()) continue;
            if (*size > limit * excess) worst = axis, excess = *size / limit, too_large = true;
            if (*size * excess < 1) worst = axis, excess = 1 / *size, too_large = false;
        }
        if (worst.empty()) return best;
        (too_large ? whole : single).insert(worst);
    }
}

Optimum OptimumSolver::at(const SymbolValues& value) {
    const Optimum* best = nullptr;
    double most = 0;
    for (std::size_t column = 0; column < cost_.memory.size(); ++column) {
        const Optimum& candidate = clamped(column, value);
        if (!candidate.closed) return candidate;
        const auto transfers = candidate.value(candidate.transfers, value);
        if (!transfers) {
            Optimum open = candidate;
            open.closed = false;
            open.why_not = "a coefficient of H is not positive at these sizes";
            return open;
        }
        if (!best || *transfers > most) most = *transfers, best = &candidate;
    }
    return best ? *best : optimum(cost_);
}

}  // namespace napkin
