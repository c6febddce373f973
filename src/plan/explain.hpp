#pragma once
// The terms of a plan's predicted times.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace napkin {

struct ExplainedTime {
    std::string kernel;
    double seconds = 0;
    std::vector<TimeTerm> terms;  ///< longest first; their sum is `seconds`
};

/// By kernel. Pre: the plan is of the form, extents and machine.
std::vector<ExplainedTime> explained_times(const Derived& derived, const Extents& extents, const Machine& machine,
                                           const Plan& plan);

/// A table for each kernel. The printed terms sum to the printed time.
std::string to_string(const std::vector<ExplainedTime>& times);

}  // namespace napkin
