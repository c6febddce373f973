#pragma once
// How large an array is once its axes have extents, and how it lies in memory without gaps.
#include <cstdint>
#include <vector>

#include "diagram/sizes.hpp"

namespace napkin {

/// The extents of the array's axes, in their order.
std::vector<std::int64_t> array_sizes(const Diagram& diagram, ArrayId array, const Extents& extents);
/// Bytes of its values as they lie in memory.
std::int64_t array_bytes(const Diagram& diagram, ArrayId array, const Extents& extents);
/// How far neighbours along each axis are apart, in values, without gaps and the last axis innermost.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& sizes);

}  // namespace napkin
