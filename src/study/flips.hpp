#pragma once
// Sizes at which the best of several changes: found between sizes that were looked at, to the exact whole size.
#include <cstdint>
#include <functional>
#include <vector>

#include "support/result.hpp"

namespace napkin {

/// Who is best at a size: a position, or one of these.
inline constexpr int nobody = -1, all_equal = -2;

struct Flip {
    std::int64_t at = 0;  ///< the first size with `after`; at - 1 has `before`
    int before = nobody, after = nobody;
    friend bool operator==(const Flip&, const Flip&) = default;
};

/// The flips between ascending sizes, by bisection. If two neighbours have the same best, nothing between them is
/// looked at. Around each flip found, up to an eighth of its size away, `near` more sizes are looked at. Costs jump
/// where tiles and waves fill up (quantization), so near a tie the best may change several times. Errors: those of
/// `best`.
Result<std::vector<Flip>> find_flips(std::vector<std::int64_t> sizes, std::int64_t near,
                                     const std::function<Result<int>(std::int64_t)>& best);

}  // namespace napkin
