#pragma once
// The tile program as text: pseudocode as in the paper (§5), after a table of its variables.
//
//   kernel O
//     variable  of  indices  tile    values  type  level    alive
//     Q         Q   [q, k]   192×64   12288  f16   ℓ0 → ℓ1  2–15
//     …
//      1  for each group of q (192 at a time):
//      2      load Q
//      4      init mu = -inf
//      5      `for each chunk of x (128 at a time)`, skipped where q - x < 0:
//      6          load K
//      8          S[q, x] = sum over k: Q[q, k] * K[x, k]
//     10          mu[q] = max(mu[q], max over x: S[q, x])
//     11          z[q] = exp(mu_old[q] - mu[q]) * z[q] + sum over x: P[q, x]
//     12          free K, S
//     14      store O
//
// A reduction is written `op over axes: body`; a carry stands before it, joined by the reduction's own operator.
#include <string>

#include "tile/sizes.hpp"

namespace napkin {

/// Deterministic; tests/support/parse_tile.hpp reads it back.
std::string to_string(const SizedProgram& program);
/// Prints one of its kernels, without the sizes.
std::string to_string(const SizedProgram& program, std::size_t kernel);

}  // namespace napkin
