#pragma once
// Sums of whole numbers as terms with factors, so that what stands on both sides of a comparison, or is added and taken
// away, cancels. Whole numbers that are reckoned without a width, as indices and coordinates are, allow that.
#include "algebra/expr.hpp"

namespace napkin {

/// The sum without terms that cancel, in the order in which they stand; the same expression where none do.
Expr without_cancelled_terms(const Expr& sum);
/// The comparison without terms that both of its sides have; the same expression where there are none. Pre: its sides
/// are whole numbers.
Expr without_common_terms(const Expr& comparison);

}  // namespace napkin
