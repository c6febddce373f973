#pragma once
// Decides whether factors of products are copied before a GPU multiplies them.
#include <optional>

#include "derive/copied_factors.hpp"
#include "plan/choose.hpp"

namespace napkin {

/// The form with these copies. Nothing where every factor is multiplied as it lies. Copied is a factor of a type that
/// some instruction multiplies, if
/// - no instruction copies its rows as they lie;
/// - it is multiplied by what its kernel computes, which lies for no instruction of the type. Its copy has a type for
///   which it does, and which holds all values;
/// - it is contiguous along another axis than the sum's, and every instruction takes the type along that one alone.
std::optional<WithCopies> with_copied_factors(const Derived& derived, const Extents& extents, const Machine& gpu);

/// The plan of choose_blocks, or that of the form with copied factors, if that one is predicted to be faster.
/// Pre and errors: those of choose_blocks.
Result<Plan> choose_copied(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
