#pragma once
// Σ_x w·Π (A + B) as moments about running origins: (A − r) + (r + B) under the binomial theorem, so that powers of
// what is large and nearly equal do not cancel. The law's side condition (law.hpp, Action::shift) is met by the choice
// of r, or the sum is refused.
#include "derive/term.hpp"

namespace napkin {

/// The sum as a map of ν and of states that were made; the term's own tail and guards are left to the caller.
/// Conditions under which the definition is undefined where the moments are not are added to `undefined`.
std::variant<Expr, FactorFailure> moments(const Term& term, const Stream& stream, const FactorOptions& options,
                                          Conditions& undefined);

}  // namespace napkin
