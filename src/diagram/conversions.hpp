#pragma once
// Conversions between integers and real numbers as casts. Where an expression has them only by the rules of kinds
// (algebra/number.hpp), they are written out. So an expression keeps its kind wherever it is moved, and the calculus
// sees where integers end.
#include "diagram/diagram.hpp"

namespace napkin {

/// The same diagram in which
///  - an integer that comes from arrays is cast where a real number is computed from it, and
///  - a body has the kind of its target; of a reduction, what is accumulated does: an integer sum with a real target
///    has an array of
///    its own, of i64, and is converted behind it, as one with a narrow target has one of i32;
///  - what a narrow integer array is given is one of its values: a cast wraps others.
Diagram with_conversions(const Diagram& diagram);

}  // namespace napkin
