#pragma once
// Strides of callers' arrays, in values, and those of the arrays that kernels read, whose dimensions may each take
// several neighbouring ones together.
#include <cstdint>
#include <optional>
#include <vector>

namespace napkin {

/// Whether the strides reach the same places as row-major ones; along an axis of one value any stride does.
bool is_row_major(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides);

/// The strides of dimensions each of which takes neighbouring ones of a view together; none where the rows of some do
/// not follow each other.
std::optional<std::vector<std::int64_t>> joined_strides(const std::vector<std::int64_t>& sizes,
                                                        const std::vector<std::int64_t>& strides,
                                                        const std::vector<std::int64_t>& joined_sizes);

}  // namespace napkin
