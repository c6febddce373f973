#pragma once
// Sizes of 0: axes without values, the arrays that they leave empty, and a diagram in which nothing runs over them.
#include "diagram/diagram.hpp"

namespace napkin {

/// What a reduction of nothing leaves in an array of the type: 0, 1, its least or its largest value.
Expr of_nothing(ReduceOp op, DType type);
/// Whether the axis has the number 0 as its size.
bool has_no_values(const Diagram& diagram, AxisId axis);
/// Whether an axis of the array has no values.
bool is_empty(const Diagram& diagram, ArrayId array);

/// The same diagram, in which the axes without values have the size 0 as a number, and no equation that computes
/// anything runs over one:
///  - what is reduced over one is the identity of the reduction in the type of its target: 0, 1, its least or its
///    largest value;
///  - an empty array is defined as 0, which nothing computes: kernels are made of the other arrays alone;
///  - a read of an empty array stands only where it is not taken, and is 0 there;
///  - choices by hand that name an axis or a kernel are left out where any axis has no values, since the kernels are
///    others. Sizes that are not known yet count as not 0.
Diagram without_empty_axes(Diagram diagram);

}  // namespace napkin
