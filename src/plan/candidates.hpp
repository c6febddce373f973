#pragma once
// The sizes among which a search chooses.
#include <cstdint>
#include <vector>

namespace napkin {

/// Powers of two and small multiples of the unit up to the extent, and the extent itself; ascending.
std::vector<std::int64_t> candidate_sizes(std::int64_t extent, std::int64_t unit);

/// Sizes that hold a whole panel or the whole axis, where there are any: a part of a panel costs a whole one.
std::vector<std::int64_t> without_parts_of_panels(const std::vector<std::int64_t>& sizes, std::int64_t panel,
                                                  std::int64_t extent);

}  // namespace napkin
