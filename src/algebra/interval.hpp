#pragma once
// Interval arithmetic on whole numbers, by the operators that indices have (index.hpp). Bounds stop at ±2^62, past
// every size there can be.
#include "algebra/index.hpp"

namespace napkin {

/// An interval around all values of the operator on values of both intervals. Pre: is_index_operator(op).
Interval apply_interval(BinaryOp op, const Interval& a, const Interval& b);
Interval negated(const Interval& a);

/// Whether values of the interval may be ones at which arithmetic stops.
bool may_saturate(const Interval& a);

}  // namespace napkin
