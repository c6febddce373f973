#pragma once
// Points of several axes, counted row by row.
#include <vector>

#include "algebra/expr.hpp"

namespace napkin {

struct RowMajorPlace {
    Expr place;  ///< of a point: 0 for the first one
    Expr count;  ///< of all points
};
/// Pre: there is an axis.
RowMajorPlace row_major_place(const std::vector<AxisId>& axes);

}  // namespace napkin
