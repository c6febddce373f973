#include "study/flips.hpp"
#include "support/ranges.hpp"

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

Result<std::vector<Flip>> between_neighbours(const std::vector<std::int64_t>& sizes,
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

}  // namespace

Result<std::vector<Flip>> find_flips(std::vector<std::int64_t> sizes, std::int64_t near,
                                     const std::function<Result<int>(std::int64_t)>& best) {
    auto coarse = between_neighbours(sizes, best);
    if (!coarse || coarse->empty() || near < 1) return coarse;
    const std::int64_t least = sizes.front(), most = sizes.back();
    for (const Flip& flip : *coarse) {
        const std::int64_t from = std::max(least, flip.at - flip.at / 8), to = std::min(most, flip.at + flip.at / 8);
        const std::int64_t step = std::max<std::int64_t>(1, (to - from) / near);
        for (std::int64_t size = from; size <= to; size += step) sizes.push_back(size);
        sizes.insert(sizes.end(), {flip.at - 1, flip.at});
    }
    sort_unique(sizes);
    return between_neighbours(sizes, best);
}

}  // namespace napkin
