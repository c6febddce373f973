#pragma once
// What a plan says, and the terms of its predicted times, as reports.
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "report/report.hpp"

namespace napkin {

struct ExplainedTime {
    std::string kernel;
    double seconds = 0;
    std::vector<TimeTerm> terms;  ///< longest first; their sum is `seconds`
};

/// By kernel. Pre: the plan is of the form, extents and machine.
std::vector<ExplainedTime> explained_times(const Derived& derived, const Extents& extents, const Machine& machine,
                                           const Plan& plan);

/// Each kernel's schedule, with what it moves, holds, takes and leaves unused.
report::Section report_of(const Plan& plan);
/// A table for each kernel, whose printed terms sum to the printed time. For programs it joins the report of the plan.
report::Section report_of(const std::vector<ExplainedTime>& times);

}  // namespace napkin
