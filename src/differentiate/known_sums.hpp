#pragma once
// Sums that are known already. Two laws of sums find them, whatever the diagram computes:
//   linearity:  Σ_x (a·f(x) + b·g(x)) = a·Σ_x f + b·Σ_x g, where a and b do not depend on x, and Σ_x a = size(x)·a;
//   order:      Σ_x f(x)·(Σ_d g(d)·h(x, d)) = Σ_d g(d)·(Σ_x f(x)·h(x, d)).
// So Σ_x P·dP, with dP a product over d, is Σ_d dO·O; and the sum of what is centred by its mean is 0.
#include <cstddef>

#include "diagram/diagram.hpp"

namespace napkin {

/// Rewrites the sums from equation `first` on that are made of sums before them: as a map of those, or as a sum of
/// fewer terms. A sum stays as it is where some term of it is not known.
void use_known_sums(Diagram& diagram, std::size_t first);

}  // namespace napkin
