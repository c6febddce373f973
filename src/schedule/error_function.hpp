#pragma once
// Cheaper forms of the error functions for results of 16 bits or fewer. In a factor c ± erf(x) with |c| >= 1 only the
// distance of erf from ±1 counts. In a product with erfc(x) a relative error far below the rounding of the result is
// enough. One power of two gives either for all x. A form that is accurate to the last digit needs two polynomials, and
// a select for each of their coefficients.
#include "algebra/expr.hpp"
#include "schedule/scheduled.hpp"

namespace napkin {

/// Number of simple instructions that a GPU issues for one function: multiply-adds, products, a difference, and the
/// sign or a select.
inline constexpr int near_erf_instructions = 11, near_erfc_instructions = 12;
/// Number of powers of two, which the SFU computes.
inline constexpr int near_specials = 1;

/// The error function of the statement that is computed as `near_erf` or `near_erfc` (emit/cuda/prelude_cuda.inc); null
/// where there is none. The statement is a product with such a factor. Its result is rounded to 16 bits or fewer at
/// once, and no statement reads it. So neither cancellation nor a select by the last digits shows the difference.
const Unary* near_error_function(const ScheduledKernel& kernel, const Step& step);

}  // namespace napkin
