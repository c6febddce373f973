#include "diagram/array_sizes.hpp"

#include "support/ids.hpp"

namespace napkin {

std::vector<std::int64_t> array_sizes(const Diagram& diagram, ArrayId array, const Extents& extents) {
    return mapped<std::int64_t>(diagram.array(array).axes, [&](AxisId axis) { return extents[axis]; });
}

std::int64_t array_bytes(const Diagram& diagram, ArrayId array, const Extents& extents) {
    return bytes(diagram.array(array).type) * count_values(diagram, array, extents);
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> strides(sizes.size(), 1);
    for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
    return strides;
}

}  // namespace napkin
