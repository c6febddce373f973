#pragma once
// Costs over a range of sizes, of one subject or of several beside each other, with the sizes at which the best of them
// changes.
#include <string>
#include <string_view>
#include <vector>

#include "study/flips.hpp"
#include "study/subject.hpp"

namespace napkin {

/// Axes that move together, and the sizes they take in turn.
struct SweepAxis {
    std::vector<std::string> axes;
    std::vector<std::int64_t> sizes;  ///< ascending
    friend bool operator==(const SweepAxis&, const SweepAxis&) = default;
};
inline constexpr std::size_t max_sweep_points = 10000;

/// "d=32..512" (powers of two between, both ends included), "d=32..512:32" (steps), "d=32..512:*4" (factors),
/// "d=32,48,96", "q=x=1024..65536" (tied). Errors, all of usage: bad-sweep, with what was expected.
Result<SweepAxis> parse_sweep(std::string_view text);

struct SweepPoint {
    std::vector<std::int64_t> sizes;  ///< one for each SweepAxis
    std::vector<Outcome> outcomes;    ///< one for each subject
};

/// The best by a criterion along the last axis, the others standing still.
struct BestAlong {
    Criterion criterion = Criterion::time;
    std::vector<std::int64_t> others;  ///< sizes of all axes but the last
    int at_first = nobody;
    std::vector<Flip> flips;
};

/// What binds the one subject along the last axis.
struct BoundAlong {
    std::vector<std::int64_t> others;
    std::string at_first;  ///< "nothing" where it does not run
    struct Change {
        std::int64_t at = 0;
        std::string bound_by;
    };
    std::vector<Change> changes;
};

struct Sweep {
    std::vector<Subject> subjects;
    std::vector<SweepAxis> axes;
    std::vector<SweepPoint> points;  ///< the product, the last axis fastest
    std::vector<BestAlong> best;     ///< with several subjects, for the criteria that one of them has
    std::vector<BoundAlong> bounds;  ///< with one subject
};

/// Errors: unknown-axis, bad-sweep (an axis twice, too many points), missing-size, those of the passes, and that of the
/// first point where no point runs.
Result<Sweep> sweep(std::vector<Subject> subjects, const std::vector<SweepAxis>& axes);

/// The size of each axis at a point.
AxisSizes sizes_at(const std::vector<SweepAxis>& axes, const std::vector<std::int64_t>& sizes);

}  // namespace napkin
