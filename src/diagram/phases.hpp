#pragma once
// Phases of axes. A transposed convolution has terms for each place at every second tap alone, as its condition says:
//   O[u, f] = sum(i, c) where((u - i) % 2 == 0, X[(u - i) // 2, c], 0) * W[f, i, c]
// With u = 2 * step + phase, and i = 2 * tap + phase, it is a product without that condition, whose results then lie
// in another order:
//   O_phases[step, phase, f] = sum(tap, c) X[step - tap, c] * W[f, 2 * tap + phase, c]      where there is such a tap
//   O[u, f] = O_phases[u // 2, u % 2, f]
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with the axes of steps, taps and phases, as the last ones (Axis::rounds_down). Nothing runs over them.
Diagram with_axes_of_phases(Diagram diagram);

/// The diagram whose sums of products have no conditions that leave out all but every n-th tap of a place. Pre: it has
/// the axes of phases; a sum without them stays.
Diagram with_phases(Diagram diagram);

}  // namespace napkin
