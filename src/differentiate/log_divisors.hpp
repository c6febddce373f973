#pragma once
// Quotients of exponentials from one number a row. Where Z is a sum of exponentials, exp(A − M) / Z is exp(A − L) with
// L = M + log Z.
//
// A gradient computes such weights again in each pass that needs them. There L stands for two arrays and a division, as
// in FlashAttention-2.
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram with L defined for each such P, as a temporary that nothing reads yet. Once more, it stays as it is.
Diagram with_log_divisors(Diagram diagram);

/// Lets the equations from number `from` on read P as exp(A − L). Where P is kept or compared it stays, and where M or
/// Z are kept and L is not. Pre: with_log_divisors.
void use_log_divisors(Diagram& diagram, std::size_t from, const std::vector<ArrayId>& kept);

}  // namespace napkin
