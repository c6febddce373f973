#pragma once
// Rows of products over windows:
//   Y[b, h, w, o] = sum(r, s, c) X[b, h + r, w + s, c] * W[o, r, s, c]
// The product has a row for each value of b, h and w. They stand beside each other in Y, and in X each shifts a
// dimension of its own. One axis t may stand for all three, which walks over those dimensions of X:
//   Y[t, o] = sum(r, s, c) X[t // (size(h) * size(w)), t // size(w) % size(h) + r, t % size(w) + s, c] * W[o, r, s, c]
// A tile then has as many rows as its instruction takes, however few values each axis has.
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// The axes b, h and w of all such products, the outermost first.
std::vector<std::vector<AxisId>> window_rows(const Diagram& diagram);

/// The arrays in which t stands for them: every equation reads these in rows, and has the axes in them and in windows
/// alone. None: there is another equation.
std::vector<ArrayId> arrays_with_rows(const Diagram& diagram, const std::vector<AxisId>& run);

/// The diagram with the axes t, as the last ones. Nothing runs over them.
Diagram with_axes_of_window_rows(Diagram diagram);

}  // namespace napkin
