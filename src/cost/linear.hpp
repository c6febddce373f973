#pragma once
// Small exact linear algebra for optima: systems of equations and the best points of polyhedra, over the rationals.
#include <optional>
#include <vector>

#include "algebra/size.hpp"

namespace napkin {

using Row = std::vector<Rational>;

/// The x with rows·x = right; nullopt when there is none or more than one.
std::optional<Row> solve(std::vector<Row> rows, Row right);

/// The coefficients c with Σ c_i·rows_i = row; nullopt when the row is independent of them. The rows are independent of
/// each other.
std::optional<Row> combination(const std::vector<Row>& rows, const Row& row);

/// Points x ≥ 0 with equal·x = equal_right and at_most·x ≤ at_most_right.
struct Polyhedron {
    std::vector<Row> equal;
    Row equal_right;
    std::vector<Row> at_most;
    Row at_most_right;
    std::size_t dimensions = 0;
};

/// The corners at which objective·x is largest; none when there is no corner, or when there would be too many to look
/// at. Pre: the objective is bounded on the polyhedron.
std::vector<Row> best_corners(const Polyhedron& polyhedron, const Row& objective);

}  // namespace napkin
