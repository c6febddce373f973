#include "cost/optimum.hpp"

#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "cost/linear.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {
Rational exponent_of(const Monomial& monomial, Symbol symbol) { return value_or(monomial, symbol, Rational(0)); }

/// The size as Σ coefficient·(product of the given symbols): by that product.
std::map<Monomial, Size> by_factors(const Size& size, const std::vector<Symbol>& symbols) {
    std::map<Monomial, Size> parts;
    for (const auto& [monomial, coefficient] : size.terms()) {
        Monomial inside, outside;
        for (const auto& [symbol, exponent] : monomial)
            (!contains(symbols, symbol) ? outside : inside).emplace(symbol, exponent);
        parts[inside] += Size::term(outside, coefficient);
    }
    std::erase_if(parts, [](const auto& part) { return part.second.is_zero(); });
    return parts;
}

/// At stream sizes of 1.
Size without_streams(const Size& size) {
    Size result;
    for (const auto& [monomial, coefficient] : size.terms()) {
        Monomial rest = monomial;
        std::erase_if(rest, [](const auto& part) { return part.first.kind == SymbolKind::stream; });
        result += Size::term(rest, coefficient);
    }
    return result;
}

/// a's group sizes are among b's with at least their powers, and not the other way round.
bool lower_order(const Monomial& a, const Monomial& b) {
    if (a == b) return false;
    return all_of(a, [&](const auto& part) { return exponent_of(b, part.first) >= part.second; });
}

/// Part of H that is one term in the group sizes.
struct OptimumTerm {
    Row powers;  ///< B_t: of 1/g, by group
    Size value;  ///< c_t, one term
};

/// The powers of the group sizes in a product, or of their inverses.
Row powers_of(const Monomial& monomial, const std::vector<Symbol>& groups, bool inverse) {
    return mapped<Rational>(
        groups, [&](Symbol g) { return inverse ? Rational(0) - exponent_of(monomial, g) : exponent_of(monomial, g); });
}

/// The power of M in a value.
Rational order(const Size& value) { return exponent_of(value.terms().begin()->first, memory_symbol); }

bool all_positive(const Row& row) {
    return all_of(row, [](Rational r) { return r > Rational(0); });
}

/// Π (value/share)^share.
Size product_of(const std::vector<OptimumTerm>& terms, const Row& shares) {
    Size total = 1;
    for (std::size_t t = 0; t < terms.size(); ++t) total *= *(terms[t].value / Size(shares[t])).pow(shares[t]);
    return total;
}

/// Equations between the group sizes: Π g^row = value. They are independent of each other.
struct PowerEquations {
    std::vector<Row> rows;
    std::vector<Size> values;  ///< one term each

    void add(Row row, Size value) {
        if (combination(rows, row)) return;
        rows.push_back(std::move(row));
        values.push_back(std::move(value));
    }
    /// Π value^part.
    [[nodiscard]] Size product(const Row& parts) const {
        Size total = 1;
        for (std::size_t k = 0; k < values.size(); ++k) total *= *values[k].pow(parts[k]);
        return total;
    }
    /// Π g^powers, where the equations determine it.
    [[nodiscard]] std::optional<Size> value_of(const Row& powers) const {
        const auto parts = combination(rows, powers);
        return parts ? std::optional(product(*parts)) : std::nullopt;
    }
};

/// The size as one term: a sum becomes its common factor times a symbol that stands for the rest, one of `sums`.
Size as_one_term(const Size& size, std::vector<Size>& sums) {
    if (size.terms().size() == 1) return size;
    Monomial common = size.terms().begin()->first;
    for (const auto& [monomial, coefficient] : size.terms())
        for (auto& [symbol, exponent] : common) exponent = std::min(exponent, exponent_of(monomial, symbol));
    std::erase_if(common, [](const auto& part) { return part.second <= Rational(0); });
    const Size rest = size / Size::term(common);
    const auto known = find(sums, rest);
    const Symbol stands_for_it{SymbolKind::sum, known - sums.begin()};
    if (known == sums.end()) sums.push_back(rest);
    return Size::term(common) * stands_for_it;
}

/// With the sums that stand under no root written out.
Size expanded(const Size& size, const std::vector<Size>& sums) {
    Size result;
    for (const auto& [monomial, coefficient] : size.terms()) {
        Size term = coefficient;
        for (const auto& [symbol, exponent] : monomial) {
            const auto written = symbol.kind == SymbolKind::sum ? sums[at(static_cast<int>(symbol.id))].pow(exponent)
                                                                : std::nullopt;
            term *= written ? *written : Size(symbol, exponent);
        }
        result += term;
    }
    return result;
}

/// What of a column of M counts at large M: the terms of highest order in the group sizes. `large_axes`: and of their
/// coefficients those largest in the axes' sizes.
Size maintained(const Size& column, const std::vector<Symbol>& groups, bool large_axes) {
    const auto parts = by_factors(column, groups);
    Size sum;
    for (const auto& [product, coefficient] : parts) {
        const bool below = any_of(parts, [&, &p = product](const auto& other) { return lower_order(p, other.first); });
        if (!below) sum += Size::term(product) * (large_axes ? leading_terms(coefficient) : coefficient);
    }
    return sum;
}

/// The column of M that is never below another one, and the columns that this is assumed of. A loop's columns come
/// before those of its head and tail, which then are conditions.
struct LimitingColumn {
    std::size_t column;
    std::vector<std::size_t> above;
};
std::optional<LimitingColumn> limiting_column(const std::vector<Size>& columns, const std::vector<bool>& in_loop) {
    for (const bool only_loops : {false, true})
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (only_loops && !in_loop[i]) continue;
            LimitingColumn found{i, {}};
            for (std::size_t j = 0; j < columns.size(); ++j)
                if (!never_above(columns[j], columns[i])) found.above.push_back(j);
            if (only_loops ? none_of(found.above, [&](std::size_t j) { return in_loop[j]; }) : found.above.empty())
                return found;
        }
    return std::nullopt;
}

/// What M leaves out is small once M is large: for a term c·M^β at the optimum, where M ≫ c^(1/(1 - β)). The largest of
/// these c.
std::vector<Size> far_below_memory(const Size& neglected, const std::vector<Symbol>& groups,
                                   const PowerEquations& equations) {
    std::vector<Size> all, largest;
    for (const auto& [product, coefficient] : by_factors(neglected, groups)) {
        const auto value = equations.value_of(powers_of(product, groups, false));
        if (!value) continue;
        for (const auto& [monomial, number] : coefficient.terms()) {
            const Size term = Size::term(monomial, number) * *value;
            const Rational beta = order(term);
            if (!(number > Rational(0)) || !(beta > Rational(0)) || !(beta < Rational(1))) continue;
            const auto small = (term / Size(memory_symbol, beta)).pow(Rational(1) / (Rational(1) - beta));
            if (small && !small->as_constant() && !contains(all, *small)) all.push_back(*small);
        }
    }
    for (const Size& small : all)
        if (none_of(all, [&](const Size& other) { return !(small == other) && never_above(small, other); }))
            largest.push_back(small);
    return largest;
}

/// What is asked of the solver beside the cost.
struct Question {
    std::set<AxisId> whole, single;     ///< axes whose group size is the whole axis, or 1
    bool large_axes = true;             ///< of the coefficients in M only the terms largest in the axes' sizes
    std::optional<std::size_t> column;  ///< the column of M that limits; none: the one that always does
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
        for (const AxisId axis : question_.whole) fix({{{group_symbol(axis), 1}}, axis_symbol(axis), true});
        for (const AxisId axis : question_.single) fix({{{group_symbol(axis), 1}}, 1});
    }

    Optimum run() {
        out_.obstacle = solve_program();
        out_.closed = out_.obstacle == Obstacle::none;
        if (!out_.closed) out_.groups.clear();
        return std::move(out_);
    }

private:
    using Term = OptimumTerm;

    void fix(GroupEquation equation) {
        const Symbol group = equation.product.begin()->first;
        const auto at = find(groups_, group);
        if (at == groups_.end()) return;
        transfers_ = transfers_.substitute(group, equation.value);
        for (Size& column : columns_) column = column.substitute(group, equation.value);
        groups_.erase(at);
        out_.groups.push_back(std::move(equation));
    }

    /// Fixes a group size that costs memory and saves no transfers at 1, and one that costs no memory at its whole
    /// axis.
    bool settle_free_groups() {
        for (bool again = true; again;) {
            again = false;
            const auto terms = by_factors(transfers_, groups_);
            const auto memory = by_factors(out_.memory, groups_);
            for (const Symbol g : groups_) {
                const bool saves = any_of(terms,
                                          [&](const auto& part) { return exponent_of(part.first, g) < Rational(0); });
                const bool costs = any_of(memory, [&](const auto& part) { return part.first.contains(g); });
                if (saves && costs) continue;
                const Size value = saves ? Size(axis_symbol(g.axis())) : Size(1);
                fix({{{g, 1}}, value, false, !saves && !costs});
                if (!find_memory()) return false;
                again = true;
                break;
            }
        }
        return true;
    }

    /// The column of M that limits, and what it holds at large M. False: none does.
    bool find_memory() {
        out_.memory = neglected_ = {};
        at_most_memory_.clear();
        const auto kept = mapped<Size>(
            columns_, [&](const Size& column) { return maintained(column, groups_, question_.large_axes); });
        const auto found = question_.column ? std::optional(LimitingColumn{*question_.column, {}})
                                            : limiting_column(kept, in_loop_);
        if (!found) return kept.empty();
        out_.memory = kept[found->column];
        neglected_ = columns_[found->column] - out_.memory;
        for (const std::size_t j : found->above) at_most_memory_.push_back(kept[j]);
        return true;
    }

    /// Returns why there is no closed form, or nothing when out_ holds it.
    Obstacle solve_program() {
        if (!find_memory() || !settle_free_groups()) return Obstacle::columns;
        std::vector<Term> terms;
        Size fixed;
        for (const auto& [monomial, coefficient] : by_factors(transfers_, groups_)) {
            for (const Symbol symbol : coefficient.symbols())
                if (symbol.kind == SymbolKind::stream) return obstacle_at(Obstacle::stream, symbol);
            if (monomial.empty()) {
                fixed = coefficient;
                continue;
            }
            for (const auto& [symbol, exponent] : monomial)
                if (exponent > Rational(0)) return obstacle_at(Obstacle::growing, symbol);
            if (any_of(coefficient.terms(), [](const auto& term) { return term.second < Rational(0); }) &&
                coefficient.terms().size() == 1)
                return Obstacle::negative;
            terms.push_back({powers_of(monomial, groups_, true), as_one_term(coefficient, out_.sums)});
        }
        Size sum = fixed;
        while (true) {
            take_determined(terms, sum);
            if (terms.empty()) break;
            if (const Obstacle found = next_order(terms, sum); found != Obstacle::none) return found;
            if (finite_.empty()) continue;
            // A group size that stays finite is 1, and what it multiplies may be of another order then: from the start.
            for (const Symbol group : std::exchange(finite_, {})) fix({{{group, 1}}, 1});
            equations_ = {};
            return solve_program();
        }
        out_.transfers = expanded(sum, out_.sums);
        describe();
        return Obstacle::none;
    }

    Obstacle obstacle_at(Obstacle obstacle, Symbol symbol) {
        out_.obstacle_at = symbol;
        return obstacle;
    }

    /// Adds to H the terms that the equations at hand determine, and takes them off the list.
    void take_determined(std::vector<Term>& terms, Size& sum) const {
        std::erase_if(terms, [&](const Term& term) {
            const auto inverse = mapped<Rational>(term.powers, [](Rational power) { return Rational(0) - power; });
            const auto value = equations_.value_of(inverse);
            if (value) sum += term.value * *value;
            return value.has_value();
        });
    }

    /// The leading terms among those that are left: adds their sum to H and the equations that they give.
    Obstacle next_order(std::vector<Term>& terms, Size& sum) {
        const std::size_t n = groups_.size();
        const auto columns = by_factors(out_.memory, groups_);
        const bool first = equations_.rows.empty();
        // Unknowns: γ by group size, and θ, the order that no term falls below.
        Polyhedron p;
        p.dimensions = n + 1;
        std::vector<std::pair<Row, Size>> memory;
        if (first)
            for (const auto& [product, y] : columns)
                memory.emplace_back(powers_of(product, groups_, false), as_one_term(y, out_.sums));
        for (const auto& [row, y] : memory) {
            p.at_most.push_back(row);
            p.at_most.back().emplace_back(0);
            p.at_most_right.emplace_back(1);
        }
        for (std::size_t i = 0; i < equations_.rows.size(); ++i) {
            p.equal.push_back(equations_.rows[i]);
            p.equal.back().emplace_back(0);
            p.equal_right.push_back(order(equations_.values[i]));
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
        if (corners.empty()) return Obstacle::too_many;
        const auto always = [&](auto condition) { return all_of(corners, condition); };
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
        if (!finite_.empty()) return Obstacle::none;
        return first ? balance(leading, active, std::move(rest), terms, sum) : spend(leading, std::move(rest), terms, sum);
    }

    /// Shares of the leading terms, which sum to 1, and a factor for each further column, so that the powers of every
    /// group balance.
    template <class Column>
    [[nodiscard]] auto balanced(const std::vector<Term>& leading, std::size_t columns, const Column& column) const {
        std::vector<Row> rows;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            Row& row = rows.emplace_back();
            for (const Term& term : leading) row.push_back(term.powers[i]);
            for (std::size_t j = 0; j < columns; ++j) row.push_back(column(j, i));
        }
        rows.emplace_back(leading.size(), Rational(1)).resize(leading.size() + columns, Rational(0));
        Row right(groups_.size(), Rational(0));
        right.emplace_back(1);
        return solve(rows, right);
    }

    /// The first order: shares w_t and multipliers λ_j.
    Obstacle balance(const std::vector<Term>& leading, const std::vector<std::pair<Row, Size>>& active,
                     std::vector<Term> rest, std::vector<Term>& terms, Size& sum) {
        const auto shares = balanced(leading, active.size(),
                                     [&](std::size_t j, std::size_t i) { return Rational(0) - active[j].first[i]; });
        if (!shares || !all_positive(*shares)) return no_balance(leading.size());
        Rational multipliers = 0;
        for (std::size_t j = 0; j < active.size(); ++j) multipliers = multipliers + (*shares)[leading.size() + j];
        Size total = product_of(leading, *shares);
        for (std::size_t j = 0; j < active.size(); ++j) {
            const Rational lambda = (*shares)[leading.size() + j];
            const Size limit = Size(memory_symbol) / active[j].second * Size(lambda / multipliers);
            total *= *limit.pow(Rational(0) - lambda);
            equations_.add(active[j].first, limit);
        }
        return keep(leading, *shares, total, std::move(rest), terms, sum);
    }

    /// A later order: shares w_t such that the terms' product is determined by the equations at hand.
    Obstacle spend(const std::vector<Term>& leading, std::vector<Term> rest, std::vector<Term>& terms, Size& sum) {
        const auto shares = balanced(leading, equations_.rows.size(),
                                     [&](std::size_t j, std::size_t i) { return equations_.rows[j][i]; });
        if (!shares) return no_balance(leading.size());
        const auto own = shares->begin() + static_cast<std::ptrdiff_t>(leading.size());
        if (!all_positive(Row(shares->begin(), own))) return no_balance(leading.size());
        const Size total = product_of(leading, *shares) * equations_.product(Row(own, shares->end()));
        return keep(leading, *shares, total, std::move(rest), terms, sum);
    }

    Obstacle keep(const std::vector<Term>& leading, const Row& shares, const Size& total, std::vector<Term> rest,
                  std::vector<Term>& terms, Size& sum) {
        for (std::size_t t = 0; t < leading.size(); ++t)
            equations_.add(leading[t].powers, leading[t].value / (total * Size(shares[t])));
        sum += total;
        terms = std::move(rest);
        return Obstacle::none;
    }

    Obstacle no_balance(std::size_t num_terms) {
        out_.num_terms = num_terms, out_.num_groups = groups_.size();
        return Obstacle::unbalanced;
    }

    /// Group sizes one by one where the equations give them, else the products that they give.
    void describe() {
        std::vector<Symbol> open;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            Row row(groups_.size(), Rational(0));
            row[i] = 1;
            if (const auto value = equations_.value_of(row))
                out_.groups.push_back({{{groups_[i], Rational(1)}}, *value});
            else
                open.push_back(groups_[i]);
        }
        for (std::size_t k = 0; k < equations_.rows.size(); ++k) {
            const Row& row = equations_.rows[k];
            Monomial product;
            bool is_open = false;
            for (std::size_t i = 0; i < groups_.size(); ++i) {
                if (row[i] == Rational(0)) continue;
                product.emplace(groups_[i], row[i]);
                is_open |= contains(open, groups_[i]);
            }
            if (is_open) out_.groups.push_back({product, equations_.values[k]});
        }
        const auto add = [&](OptimumCondition condition) {
            if (!contains(out_.where, condition)) out_.where.push_back(std::move(condition));
        };
        for (const Size& column : at_most_memory_) add({column, false});
        for (const Size& small : far_below_memory(neglected_, groups_, equations_)) add({small, true});
    }

    Question question_;
    std::vector<Symbol> groups_;  ///< group sizes still to be chosen
    Size transfers_;
    std::vector<Size> columns_;  ///< of M, at stream sizes of 1
    std::vector<bool> in_loop_;
    Size neglected_;                    ///< what the limiting column holds beside out_.memory
    std::vector<Size> at_most_memory_;  ///< other columns, which the form takes to be below the limiting one
    PowerEquations equations_;
    std::vector<Symbol> finite_;  ///< group sizes that were found not to grow with M
    Optimum out_;
};

}  // namespace

std::vector<StandardTerm> Optimum::standard_form() const {
    std::map<Rational, Size> by_beta;
    if (!closed) return {};
    for (const auto& [monomial, coefficient] : transfers.terms()) {
        Monomial rest = monomial;
        rest.erase(memory_symbol);
        by_beta[Rational(0) - exponent_of(monomial, memory_symbol)] += Size::term(rest, coefficient);
    }
    std::vector<StandardTerm> terms;
    for (auto& [beta, alpha] : by_beta) terms.push_back({alpha, beta});
    return terms;
}

std::optional<double> Optimum::value(const Size& size, const SymbolValues& of_symbol) const {
    const auto number = size.evaluate([&](Symbol symbol) {
        return symbol.kind == SymbolKind::sum ? sums[at(static_cast<int>(symbol.id))].evaluate(of_symbol)
                                              : of_symbol(symbol);
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
    std::set<AxisId> whole, single;
    while (true) {
        const Optimum& best = solved({column, whole, single});
        if (!best.closed) return best;
        std::optional<AxisId> worst;
        double excess = 1 + 1e-12;
        bool too_large = false;
        for (const GroupEquation& group : best.groups) {
            const auto size = best.value(group.value, value);
            double limit = 1;
            std::optional<AxisId> axis;
            bool sized = size.has_value();
            for (const auto& [symbol, exponent] : group.product) {
                const auto id = symbol.axis();
                const auto extent = value(axis_symbol(id));
                sized = sized && extent && exponent == Rational(1);
                if (!axis && !whole.contains(id) && !single.contains(id)) axis = id;
                limit *= extent.value_or(1);
            }
            if (!sized || !axis) continue;
            if (*size > limit * excess) worst = axis, excess = *size / limit, too_large = true;
            if (*size * excess < 1) worst = axis, excess = 1 / *size, too_large = false;
        }
        if (!worst) return best;
        (too_large ? whole : single).insert(*worst);
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
            open.obstacle = Obstacle::coefficient;
            return open;
        }
        if (!best || *transfers > most) most = *transfers, best = &candidate;
    }
    return best ? *best : optimum(cost_);
}

}  // namespace napkin
