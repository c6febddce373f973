#include "cost/linear.hpp"

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
Rational dot(const Row& a, const Row& b) {
    Rational sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum = sum + a[i] * b[i];
    return sum;
}

}  // namespace

std::optional<Row> solve(std::vector<Row> rows, Row right) {
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
    Row x;
    for (std::size_t r = 0; r < unknowns; ++r) x.push_back(right[r] / rows[r][r]);
    return x;
}

std::optional<Row> combination(const std::vector<Row>& rows, const Row& row) {
    if (rows.empty()) {
        const bool zero = all_of(row, [](Rational r) { return r == Rational(0); });
        return zero ? std::optional(Row{}) : std::nullopt;
    }
    std::vector<Row> transposed(row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
        for (const Row& r : rows) transposed[i].push_back(r[i]);
    return solve(std::move(transposed), row);
}

std::vector<Row> best_corners(const Polyhedron& p, const Row& objective) {
    // A corner is where as many independent constraints are tight as there are dimensions: every choice of them is
    // looked at.
    std::vector<Row> tight = p.at_most;
    Row right = p.at_most_right;
    for (std::size_t i = 0; i < p.dimensions; ++i) {
        tight.emplace_back(p.dimensions, Rational(0));
        tight.back()[i] = 1;
        right.emplace_back(0);
    }
    if (p.equal.size() > p.dimensions) return {};
    const std::size_t chosen = p.dimensions - p.equal.size();
    double choices = 1;
    for (std::size_t i = 0; i < chosen; ++i)
        choices *= static_cast<double>(tight.size() - i) / static_cast<double>(i + 1);
    constexpr double most_choices = 20000;
    if (chosen > tight.size() || choices > most_choices) return {};

    const auto inside = [&](const Row& x) {
        for (const Rational& value : x)
            if (value < Rational(0)) return false;
        for (std::size_t i = 0; i < p.at_most.size(); ++i)
            if (dot(p.at_most[i], x) > p.at_most_right[i]) return false;
        return true;
    };
    std::vector<Row> best;
    std::optional<Rational> highest;
    std::vector<bool> pick(tight.size(), false);
    std::fill(pick.begin(), pick.begin() + static_cast<std::ptrdiff_t>(chosen), true);
    do {
        std::vector<Row> rows = p.equal;
        Row values = p.equal_right;
        for (std::size_t i = 0; i < tight.size(); ++i)
            if (pick[i]) rows.push_back(tight[i]), values.push_back(right[i]);
        const auto x = solve(std::move(rows), std::move(values));
        if (!x || !inside(*x)) continue;
        const Rational value = dot(objective, *x);
        if (highest && value < *highest) continue;
        if (!highest || value > *highest) best.clear();
        highest = value;
        if (!contains(best, *x)) best.push_back(*x);
    } while (std::prev_permutation(pick.begin(), pick.end()));
    return best;
}

}  // namespace napkin
