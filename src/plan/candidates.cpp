#include "plan/candidates.hpp"
#include "support/ranges.hpp"

namespace napkin {

std::vector<std::int64_t> candidate_sizes(std::int64_t extent, std::int64_t unit) {
    std::vector<std::int64_t> sizes{extent};
    for (std::int64_t s = 1; s < extent; s *= 2) {
        if (unit == 1 || s < unit) sizes.push_back(s);
        if (s > extent / unit) continue;
        sizes.push_back(s * unit);
        if (unit > 1 && s >= 2 && s <= extent / unit / 3 * 2) sizes.push_back(s * unit / 2 * 3);
    }
    sort_unique(sizes);
    return sizes;
}

std::vector<std::int64_t> without_parts_of_panels(const std::vector<std::int64_t>& sizes, std::int64_t panel,
                                                  std::int64_t extent) {
    std::vector<std::int64_t> whole;
    for (const std::int64_t s : sizes)
        if (s >= panel || s == extent) whole.push_back(s);
    return whole.empty() ? sizes : whole;
}

}  // namespace napkin
