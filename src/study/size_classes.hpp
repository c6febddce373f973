#pragma once
// The plans that serve a program at all lengths of its axes of any size, and from which length on another one is
// faster.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "report/report.hpp"
#include "run/pipeline.hpp"
#include "support/result.hpp"

namespace napkin {

/// Lengths for which one plan is taken.
struct SizeClass {
    std::int64_t from = 1, to = 1;  ///< both are in it
    std::int64_t planned_at = 1;
    double seconds_from = 0, seconds_to = 0;
    double slower = 0;  ///< at worst, than the plan for the length alone, as a share of its time; at the lengths tried
};

struct SizeClasses {
    std::string diagram;
    std::vector<std::string> axes;  ///< that have the length together
    std::string machine;
    std::size_t num_plans = 0;
    std::vector<SizeClass> classes;  ///< ascending
    std::int64_t longest = 0;        ///< the longest length with a plan
};

/// The axes of any size to which neither the text nor the options give a size. None of a text with errors.
std::vector<std::string> open_axes(const std::shared_ptr<const Source>& source, PipelineOptions options);

/// Plans the program at powers of two, and keeps the fewest plans that are near enough to the best one at each. Errors:
/// those of run_pipeline at each of the lengths. Pre: `axes` are not empty.
Result<SizeClasses> size_classes(const std::shared_ptr<const Source>& source, const PipelineOptions& options,
                                 std::vector<std::string> axes);

report::Section report_of(const SizeClasses& found);

}  // namespace napkin
