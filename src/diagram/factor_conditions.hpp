#pragma once
// Conditions around products under a sum, as in sum(k) where(x <= q and y < 3, A[q, x, k] * B[y, k], 0). Each part
// moves to a factor that has its axes: where(x <= q, A[q, x, k], 0) * where(y < 3, B[y, k], 0). What is left is a
// product, for the tensor cores and for other rewritings.
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram whose sums of products have conditions at factors. A part that keeps a read inside of its array moves to
/// the factor with that read. Other parts move to the first factor that has their axes, or else to the first with a
/// summed axis of theirs. Parts that read data move to all factors with a summed axis of theirs: what a length leaves
/// out may be NaN. The rest stays around the product.
/// Everything stays where a read that is kept inside has other axes. So it does where a computed factor would lose a
/// part: it may overflow, and the condition keeps that out of the sum.
Diagram with_conditions_at_factors(Diagram diagram);

}  // namespace napkin
