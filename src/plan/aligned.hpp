#pragma once
// Decides whether factors of products are copied into longer rows before a GPU multiplies them.
#include <optional>

#include "derive/aligned_rows.hpp"
#include "plan/choose.hpp"

namespace napkin {

/// The form with these copies. Nothing where every row of a factor can be copied as it lies.
std::optional<WithAlignedRows> with_copied_rows(const Derived& derived, const Extents& extents, const Machine& gpu);

/// The plan of choose_blocks. Factors of products may lie in rows that no copy into an operand tile can read. The plan
/// is then of the form that copies them first (aligned_rows.hpp), if that is predicted to be faster.
/// Pre and errors: those of choose_blocks.
Result<Plan> choose_aligned(const Derived& derived, const Extents& extents, const Machine& gpu,
                            const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
