#pragma once
// Subjects beside each other at one point, the fastest first: which machine is best for this workload?
#include <string>

#include "study/subject.hpp"

namespace napkin {

struct Ranking {
    std::vector<Subject> subjects;
    std::vector<TiedAxes> sizes;
    std::vector<Outcome> outcomes;
    std::vector<std::size_t> order;  ///< positions by time; those that do not run come last
};

/// Errors: missing-size and those of the passes; that of the first subject where none runs.
Result<Ranking> rank(std::vector<Subject> subjects);

}  // namespace napkin
