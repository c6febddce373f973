#pragma once
// The derivative of a scalar expression by one of the values that it is made of.
#include "algebra/expr.hpp"

namespace napkin {

/// ∂e/∂leaf, where `leaf` is a node of e, such as a read; null: 0 everywhere. A part of a choice counts where it is
/// taken, so that reads which a condition keeps inside of their arrays stay behind it. A cast between real numbers
/// passes the derivative on. Where none exists:
///  - of max(a, b) and min(a, b), which are equal, it is that of a; abs has 0 at 0;
///  - comparisons, logic, integers, // and rounding have 0.
Expr derivative(const Expr& e, const Expr& leaf);

}  // namespace napkin
