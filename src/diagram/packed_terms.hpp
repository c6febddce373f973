#pragma once
// Sums whose terms each choose their place in the result by an integer, as the gradient of an embedding has them:
// dT[v, d] = sum(n) where(I[n] == v, dY[n, d], 0). Terms of one place are put beside each other, in their order. Each
// place then takes its own terms alone:
//   I_begin[w]    = sum(n) where(I[n] < w, 1, 0)                                       w as long as v + 1
//   I_rank[n]     = sum(u) where(u < n, I[u] <= I[n], I[u] < I[n])                      u as long as n
//   I_order[u]    = max(n) where(I_rank[n] == u, n, 0)
//   dY_packed[u, d] = dY[I_order[u], d]
//   dT[v, d]      = sum(u) where(u >= I_begin[v] and u < I_begin[v + 1], dY_packed[u, d], 0)
// I_begin ascends, which says how far loops over u go. Terms of several axes are numbered as I[n, m] has them, as in
// I_flat[u] = I[u // size(m), u % size(m)].
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with the axes w and u of all such sums, as the last ones. Nothing runs over them.
Diagram with_axes_of_packed_terms(Diagram diagram);

/// The diagram whose such sums are made of the equations above, if they have an axis beside those of terms and places.
/// Without one, to find I_begin takes as long as the sum. Pre: it has their axes; a sum without them stays.
Diagram with_packed_terms(Diagram diagram);

}  // namespace napkin
