#pragma once
// Sums of products over windows of few channels, as in Y[h, o] = sum(r, c) X[2 * h + r, c] * W[o, r, c]. A tile of X
// has rows of c alone, which may be too short for tensor cores. The values of each window are put beside each other:
//   X_unrolled[h, t] = where(t < size(r) * size(c), X[2 * h + t // size(c), t % size(c)], 0)
//   W_unrolled[o, t] = where(t < size(r) * size(c), W[o, t // size(c), t % size(c)], 0)
//   Y[h, o]          = sum(t) X_unrolled[h, t] * W_unrolled[o, t]
// The axis t is as long as r and c together, in whole rows of 16 values.
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with the axes t of all such sums, as the last ones. Nothing runs over them.
Diagram with_axes_of_windows(Diagram diagram);

/// The diagram whose such sums are made of the equations above. Pre: it has their axes; a sum without them stays.
Diagram with_unrolled_windows(Diagram diagram);

}  // namespace napkin
