#pragma once
// Decides whether factors of products are copied or converted before a GPU multiplies them.
#include <array>
#include <optional>

#include "derive/copied_factors.hpp"
#include "plan/choose.hpp"

namespace napkin {

inline constexpr std::array other_factors{FactorForm::copied, FactorForm::converted, FactorForm::padded};

/// The form with these factors; nothing where that changes none. Copied is a factor of a type that some instruction
/// multiplies, if
/// - no instruction copies its rows as they lie;
/// - it has another type than what it is multiplied by: the other factor's, or that of what its kernel computes, which
///   lies for no instruction of the factor's type. Its copy has a type which has all its values;
/// - it is contiguous along another axis than the sum's, and every instruction takes the type along that one alone.
/// Converted is one of another type, and a map that the kernel computes as a factor. Padded is one that conditions
/// alone keep inside of its array.
std::optional<WithCopies> with_factors(const Derived& derived, const Extents& extents, const Machine& gpu,
                                       FactorForm factors);

/// The plan of choose_blocks, or that of the form with copied or converted factors, if one is predicted to be faster.
/// Pre and errors: those of choose_blocks.
Result<Plan> choose_copied(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
