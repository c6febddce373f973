#pragma once
// Products that a loop computes anew in every mainloop iteration, whose columns go into sums of the CTA tile. An
// example are block-scaled products, whose sums over a block are scaled before they are added up. The result needs
// registers beside the sums only until it is added. It can be computed in parts of columns, each with the statements
// that follow it. Then all parts use the registers of one part, and CTA tiles may be larger.
#include <optional>
#include <string>
#include <variant>

#include "schedule/scheduled.hpp"

namespace napkin {

/// The loop's products that may be computed in so many parts of columns, with what follows them; or why there are none.
/// The kernel needs one loop on the tensor cores. Its iterations begin with products of whole warpgroups that add to
/// nothing, and end with maps of the same columns.
std::variant<ColumnParts, std::string> columns_in_parts(const ScheduledKernel& kernel, std::int64_t parts);
/// The parts that the schedule's atoms ask for; none where they ask for 1, or for what is not possible.
std::optional<ColumnParts> chosen_column_parts(const ScheduledKernel& kernel);

}  // namespace napkin
