#include "run/flips.hpp"

namespace napkin {
namespace {

struct Seen {
    std::int64_t size;
    int best;
};

Status bisect(Seen low, Seen high, const std::function<Result<int>(std::int64_t)>& best, std::vector<Flip>& flips) {
    if (low.best == high.best) return Done{};
    if (high.size - low.size <= 1) {
        flips.push_back({high.size, low.best, high.best});
        return Done{};
    }
    const std::int64_t between = low.size + (high.size - low.size) / 2;
    const auto found = best(between);
    if (!found) return found.errors();
    const Seen middle{between, *found};
    if (const Status below = bisect(low, middle, best, flips); !below) return below;
    return bisect(middle, high, best, flips);
}

}  // namespace

Result<std::vector<Flip>> find_flips(const std::vector<std::int64_t>& sizes,
                                     const std::function<Result<int>(std::int64_t)>& best) {
    std::vector<Flip> flips;
    Seen last{0, nobody};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto found = best(sizes[i]);
        if (!found) return found.errors();
        const Seen here{sizes[i], *found};
        if (i > 0)
            if (const Status between = bisect(last, here, best, flips); !between) return between.errors();
        last = here;
    }
    return flips;
}

}  // namespace napkin
