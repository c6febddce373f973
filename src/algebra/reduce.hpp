#pragma once
// The primitive reductions: commutative monoids ⊕ with their identities.
#include <cstdint>
#include <string_view>

#include "algebra/expr.hpp"

namespace napkin {

enum class ReduceOp : std::uint8_t { sum, prod, max, min };

double identity(ReduceOp op);                   ///< 0, 1, -inf, +inf
double apply(ReduceOp op, double a, double b);  ///< a ⊕ b; max and min propagate NaN
/// The extremum of an affine map of coordinates, which lies at an end of each: nothing has to run over them.
bool lies_at_an_end(ReduceOp op, const Expr& body);
BinaryOp pairwise(ReduceOp op);      ///< ⊕ as an operator of expressions
std::string_view name(ReduceOp op);  ///< "sum", …

}  // namespace napkin
