#pragma once
// Reads that conditions alone keep inside of their arrays, and 0 elsewhere, as those of a convolution with padding. In
//   sum(i, c) where(y + i >= 1, where(y + i <= size(y), X[y + i - 1, c], 0), 0) * W[i, c]
// the factor is X_padded[y + i, c], of an array with zeros around X:
//   X_padded[p, c] = where(p >= 1, where(p <= size(y), X[p - 1, c], 0), 0)        p = y + i
// The axes may be subtracted, and the index be a quotient of their sum, as where a convolution is transposed. In
//   sum(r, c) where((h - r) % 2 == 0, X[(h - r) // 2, c], 0) * W[r, c]
// the factor is X_padded[h - r + size(r) - 1, c], of an array with zeros between the rows of X.
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with the axes of all padded arrays, as the last ones. Nothing runs over them.
Diagram with_axes_of_padding(Diagram diagram);

/// The diagram whose sums of products read padded arrays. A factor is replaced if each index is
/// made of one sum of axes, and some condition has this sum alone. Other conditions stay. Pre: it has the axes of the
/// padding; a factor without them stays.
Diagram with_padded_reads(Diagram diagram);

/// Whether the equation makes a padded array: of values of one array, it has zeros where conditions do not hold.
bool is_padding(const Equation& equation);

}  // namespace napkin
