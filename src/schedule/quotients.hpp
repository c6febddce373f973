#pragma once
// Quotients whose vectors of a row share the divisor. On a CPU a division takes as long as several multiplications.
#include <optional>

#include "schedule/scheduled.hpp"

namespace napkin {

/// A quotient that is computed as a product with a reciprocal. The reciprocal is taken once for all vectors along the
/// atom's vector axis.
struct CommonDivisor {
    Expr dividend, divisor;
};
/// The quotient that is all of what a statement computes on a CPU; none where there is no such one. Nothing else reads
/// its result: under a floor, one more rounding could make it an integer less. A divisor that is a number is divided
/// by, as quotients of integers can be exact. Error bounds count on either (Rounding::step in check/bounded.hpp).
std::optional<CommonDivisor> common_divisor(const ScheduledKernel& kernel, const Step& step);

/// The statement's values are stored as they are, and no statement reads them.
bool is_result_alone(const ScheduledKernel& kernel, const Step& step);

}  // namespace napkin
