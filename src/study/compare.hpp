#pragma once
// One costed thing against another that differs in what a short text names: `no-fuse`, `machine=h200`, `types=e4m3`,
// another file.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/sweep.hpp"

namespace napkin {

/// What the right side changes; everything else is as on the left.
struct Against {
    std::string file, diagram, machine, form;
    std::optional<DType> types;
    std::optional<bool> fuse;
    std::optional<std::int64_t> devices, cluster;
    AxisSizes sizes;
};

/// "B.nk,machine=h200,set:q=8192". Errors, all of usage: bad-against (an item that is none: the nearest; a value that
/// is wrong; twice).
Result<Against> parse_against(std::string_view spec);

/// The two sides with what tells them apart as labels. `other` is the text of `against.file`, null without one. Sizes
/// that `against` does not set are those of the left, also where another text has its own. Errors: those of both texts;
/// unknown-axis.
Result<std::vector<Subject>> sides(const CostQuery& left, const AxisSizes& sizes, const Against& against,
                                   std::shared_ptr<const Source> other);

/// How many times its present size, and which part of it, a size is looked at.
inline constexpr std::int64_t farthest = 16;

/// Who is faster along one group of tied axes, the others standing still.
struct WinnersAlong {
    TiedAxes axes;  ///< with their present size
    std::int64_t from = 1, to = 1;
    int at_from = nobody;
    std::vector<SweepChange<int>> changes;
    std::vector<std::string> why;  ///< of each change, where a side does not fit any more; else empty
};

struct Comparison {
    std::vector<Subject> subjects;
    std::vector<TiedAxes> sizes;
    std::vector<Outcome> outcomes;
    std::vector<WinnersAlong> along;
};

/// Costs both sides as a sweep does: at the present size, at the `farthest` ones, and between two with different
/// winners until these are a sixteenth apart. Sizes that make no sense, or where neither side fits, are left out.
/// Errors: missing-size and those of the passes.
Result<Comparison> compare(std::vector<Subject> subjects);

}  // namespace napkin
