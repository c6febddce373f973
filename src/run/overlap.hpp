#pragma once
// Whether arrays in memory share bytes, exactly, from their addresses, sizes and strides alone.
#include <cstdint>
#include <vector>

namespace napkin {

/// Elements of `width` bytes at base + Σ index·stride·width.
struct StridedArray {
    std::uintptr_t base = 0;
    std::int64_t width = 1;
    std::vector<std::int64_t> sizes, strides;  ///< strides in elements, of either sign, one an axis
};

/// Whether every element lies within the address space: no stride is so long that an address wraps around.
bool is_addressable(const StridedArray& array);

/// Whether two elements of one array share bytes. Pre: addressable.
bool overlaps_itself(const StridedArray& array);

/// Whether an element of one shares bytes with an element of the other. Pre: both addressable.
bool overlap(const StridedArray& a, const StridedArray& b);

}  // namespace napkin
