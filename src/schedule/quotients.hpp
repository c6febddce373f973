#pragma once
// Quotients by what vectors of a row have in common: on a CPU a division takes as long as several multiplications.
#include <optional>

#include "schedule/scheduled.hpp"

namespace napkin {

/// A quotient that is computed as a product with a reciprocal, which is taken once for all vectors along the atom's
/// vector axis.
struct CommonDivisor {
    Expr dividend, divisor;
};
/// The whole of what a statement computes on a CPU, if it is such a quotient: a result that nothing else reads, as one
/// step of rounding more would be a whole number less under a floor. By a number it is divided: of whole numbers there
/// are exact quotients. Error bounds count on either (Rounding::step in check/bounded.hpp).
std::optional<CommonDivisor> common_divisor(const ScheduledKernel& kernel, const Step& step);

/// The statement's values are stored as they are, and no statement reads them.
bool is_result_alone(const ScheduledKernel& kernel, const Step& step);

}  // namespace napkin
