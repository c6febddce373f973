#pragma once
// A product that a loop computes anew in every turn, and whose columns go into sums of the group's: block-scaled
// products, whose sums over a block are scaled before they are added up. Its result needs registers beside the sums'
// only for as long as it is on its way there. Computed in parts of columns, each with the statements that follow it,
// one part's registers serve for all of them, and tiles may be larger.
#include <optional>
#include <string>
#include <variant>

#include "schedule/scheduled.hpp"

namespace napkin {

/// The loop's products that may be computed in so many parts of columns, and what follows them; or why there are none:
/// the kernel has no loop on the matrix unit whose turns begin with products that several warps run together and add to
/// nothing, and end with maps of the same columns.
std::variant<ColumnParts, std::string> columns_in_parts(const ScheduledKernel& kernel, std::int64_t parts);
/// What the schedule's atoms say; nothing where they say 1, or what cannot be.
std::optional<ColumnParts> chosen_column_parts(const ScheduledKernel& kernel);

}  // namespace napkin
