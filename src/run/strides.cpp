#include "run/strides.hpp"

#include "diagram/array_sizes.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

bool is_row_major(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
    const auto wanted = row_major_strides(sizes);
    for (std::size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] > 1 && strides[d] != wanted[d]) return false;
    return true;
}

std::optional<std::vector<std::int64_t>> joined_strides(const std::vector<std::int64_t>& sizes,
                                                        const std::vector<std::int64_t>& strides,
                                                        const std::vector<std::int64_t>& joined_sizes) {
    if (contains(sizes, 0)) return row_major_strides(joined_sizes);
    std::vector<std::int64_t> out(joined_sizes.size(), 1);
    std::size_t d = sizes.size();
    for (std::size_t j = joined_sizes.size(); j-- > 0;) {
        std::int64_t together = 1;
        while (d > 0 && (together < joined_sizes[j] || (j == 0 && sizes[d - 1] == 1))) {
            --d;
            if (sizes[d] > 1 && together > 1 && strides[d] != out[j] * together) return std::nullopt;
            if (together == 1) out[j] = strides[d];
            together *= sizes[d];
        }
        internal_check(together == joined_sizes[j], "kernel: a view's dimensions do not make those that are read");
    }
    return out;
}

}  // namespace napkin
