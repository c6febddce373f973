#pragma once
// Costs over a range of sizes, of one subject or of several beside each other. Each size is planned, as `napkin plan`
// plans it. What changes is known between neighbouring sizes, and not at which size between them.
#include <string>
#include <string_view>
#include <vector>

#include "study/subject.hpp"

namespace napkin {

/// Axes that move together, and the sizes they take in turn.
struct SweepAxis {
    std::vector<std::string> axes;
    std::vector<std::int64_t> sizes;  ///< ascending
    friend bool operator==(const SweepAxis&, const SweepAxis&) = default;
};
/// The most for all subjects together; a plan takes tenths of a second.
inline constexpr std::size_t max_sweep_plans = 1000;
inline constexpr std::size_t max_sweep_points = 10000;  ///< of the closed form

/// "d=32..512" (powers of two between, both ends included), "d=32..512:32" (steps), "d=32..512:*4" (factors),
/// "d=32,48,96", "q=x=1024..65536" (tied). Errors, all of usage: bad-sweep, with what was expected.
Result<SweepAxis> parse_sweep(std::string_view text);

struct SweepPoint {
    std::vector<std::int64_t> sizes;  ///< one for each SweepAxis
    std::vector<Outcome> outcomes;    ///< one for each subject
};

/// A change between two sizes of a sweep that follow each other.
template <class What>
struct SweepChange {
    std::int64_t after = 0, at = 0;  ///< the sizes before and behind it
    What what;                       ///< from the second one on
};

/// The best by a criterion along the last axis, the others standing still.
struct BestAlong {
    Criterion criterion = Criterion::time;
    std::vector<std::int64_t> others;  ///< sizes of all axes but the last
    int at_first = nobody;
    std::vector<SweepChange<int>> changes;
};

/// What binds the one subject along the last axis.
struct BoundAlong {
    std::vector<std::int64_t> others;
    std::string at_first;  ///< "nothing" where it does not run
    std::vector<SweepChange<std::string>> changes;
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
