#pragma once
// Reads that conditions alone keep inside of their arrays, and 0 elsewhere, as those of a convolution with padding. In
//   sum(i, c) where(y + i >= 1, where(y + i <= size(y), X[y + i - 1, c], 0), 0) * W[i, c]
// the factor is X_padded[y + i, c], of an array with zeros around X:
//   X_padded[p, c] = where(p >= 1, where(p <= size(y), X[p - 1, c], 0), 0)        p = y + i - 1
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with the axes of all padded arrays, as the last ones. Nothing runs over them.
Diagram with_axes_of_padding(Diagram diagram);

/// The diagram whose sums of products read padded arrays. A factor is replaced if its indices are affine with factors
/// above 0, and some condition says no more than that one is inside. Other conditions stay. Pre: it has the axes of the
/// padding; a factor without them stays.
Diagram with_padded_reads(Diagram diagram);

/// Whether the equation makes a padded array: of values of one array, it has zeros where conditions do not hold.
bool is_padding(const Equation& equation);

}  // namespace napkin
