#pragma once
// Weights from one number a row. With E = exp(A − M), Z = ΣE and P = E / Z, P is exp(A − L) where L = M + log Z.
//
// A gradient computes weights again in each pass that needs them. There L stands for two arrays and a division, as in
// FlashAttention-2.
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with L defined for each such P, as a temporary that nothing reads yet. Once more, it stays as it is.
Diagram with_logsumexps(Diagram diagram);

/// Lets the equations from number `from` on read P as exp(A − L). Where P is kept or compared it stays, and where M or
/// Z are kept and L is not. Pre: with_logsumexps.
void use_logsumexps(Diagram& diagram, std::size_t from, const std::vector<ArrayId>& kept);

}  // namespace napkin
