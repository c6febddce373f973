#pragma once
// Sums of products: what every look at a contraction begins with.
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// The product that the expression is, or that it widens to i64, as sums of integers do (conversions.hpp). Else null.
const Binary* as_product(const Expr& e);

/// What a product multiplies, products in it taken apart; of another expression, itself.
std::vector<Expr> factors_of(const Expr& e);

/// At which the equation's body is evaluated: of the target, times those that are reduced.
double count_points(const Diagram& diagram, const Equation& equation, const Extents& extents);

/// A sum over a product of three arrays or more and numbers: it is taken apart, and nothing has to run over all of its
/// points.
bool is_product_of_arrays(const Equation& equation);

/// The axes of a sum over products of two operands, as those of a matrix multiply.
struct ProductAxes {
    std::vector<AxisId> m, n;   ///< of the first operand and the target, of the second and the target
    std::vector<AxisId> k;      ///< summed
    std::vector<AxisId> batch;  ///< of all three
    std::vector<AxisId> loose;  ///< of the target alone
};
/// Nullopt where an operand lacks a summed axis.
std::optional<ProductAxes> product_axes(const std::vector<AxisId>& first, const std::vector<AxisId>& second,
                                        const std::vector<AxisId>& target, const std::vector<AxisId>& summed);

}  // namespace napkin
