#pragma once
// The error function where only its distance from ±1 counts: in a factor c ± erf(x) with |c| >= 1, as GELU has it, an error that is small beside 1 is one of
// the sum's own rounding. One power of two does then for all x, where erf by itself, good to its last digit also near zero, takes two polynomials and
// a choice of each of their coefficients.
#include "algebra/expr.hpp"
#include "schedule/scheduled.hpp"

namespace napkin {

/// What a GPU issues for one `near_erf` beside the power of two: seven multiply-adds, two products, a difference, and the sign.
inline constexpr int near_erf_instructions = 11;

/// The error function of the statement that is computed as `near_erf` (emit/cuda/prelude_cuda.inc), to within 2^-21 of what it is; null where there is none. The
/// statement is a product with such a factor, rounded to 16 bits or fewer at once and read by no other, so that neither digits that cancel
/// nor a choice by the last of them shows the difference.
const Unary* near_erf(const ScheduledKernel& kernel, const Step& step);

}  // namespace napkin
