#pragma once
// The primitive reductions: commutative monoids ⊕ with their identities.
#include <cstdint>
#include <string_view>

namespace napkin {

enum class ReduceOp : std::uint8_t { sum, prod, max, min };

double identity(ReduceOp op);                   ///< 0, 1, -inf, +inf
double apply(ReduceOp op, double a, double b);  ///< a ⊕ b; max and min propagate NaN
std::string_view name(ReduceOp op);             ///< "sum", …

}  // namespace napkin
