#pragma once
// Products whose rows each choose their matrix, as tokens choose experts: Y[t, h] = sum(c) X[t, c] * W[of[t], h, c].
// Rows of one matrix are put beside each other, in whole blocks of 128, so that a tile has one matrix:
//   of_count[e]  = sum(t) where(of[t] == e, 1, 0)
//   of_start[e]  = sum(g) where(g < e, (of_count[g] + 127) // 128 * 128, 0)        g as long as e
//   of_rank[t]   = sum(u) where(u < t, where(of[u] == of[t], 1, 0), 0)             u as long as t
//   of_place[t]  = of_start[of[t]] + of_rank[t]
//   of_source[p] = max(t) where(of_place[t] == p, t, -1)                           p = t + 127 * e
//   of_matrix[p] = (sum(e) where(of_start[e] <= p, 1, 0)) - 1
//   X_rows[p, c] = where(of_source[p] >= 0, X[of_source[p], c], 0)
//   Y_rows[p, h] = sum(c) X_rows[p, c] * W[of_matrix[p // 128 * 128], h, c]
//   Y[t, h]      = Y_rows[of_place[t], h]
// Where a condition of t alone makes rows 0, as behind the last of packed sequences, they choose matrix 0, and stay 0.
//
// Rows of several axes, as those of tokens that choose several experts each, are numbered as of[t, j] has them. In the
// equations their number stands for t, as in of_flat[u] = of[u // size(j), u % size(j)]. The array of rows may lack
// some of their axes, as X[t, c] lacks j. Summed axes of rows, and factors without the product's own summed axes, stay
// behind. So Y[t, h] = sum(j, c) G[t, j] * X[t, c] * W[of[t, j], h, c] ends as
//   Y[t, h]      = sum(j) G[t, j] * Y_rows[of_place[t, j], h]
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with the axes g, u and p of all such products, as the last ones. Nothing runs over them.
Diagram with_axes_of_groups(Diagram diagram);

/// The diagram whose such products are made of the equations above. Pre: it has the axes of the groups; a product
/// without them stays.
Diagram with_grouped_rows(Diagram diagram);

}  // namespace napkin
