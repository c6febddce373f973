#pragma once
// A plan that its compiler accepts. Where a kernel is refused, the search takes its next candidate for it.
#include <functional>
#include <string>
#include <vector>

#include "plan/choose.hpp"
#include "plan/plan.hpp"
#include "support/result.hpp"

namespace napkin {

/// Plans without the candidates that are refused, as choose_plan does.
using PlanWithout = std::function<Result<Plan>(const std::vector<KernelCandidate>& refused)>;
/// Why a kernel is refused, a clause for each reason. Empty where it is accepted.
struct KernelRefusal {
    std::vector<std::string> why;
    /// Whether the refusal comes from what the kernel computes rather than from its sizes. If two candidates of it are
    /// then refused in the same words, no other is better.
    bool may_last = false;
};
/// By kernel of the plan. Several threads may call it at a time.
using Refusals = std::function<std::vector<KernelRefusal>(const Plan&)>;

struct AcceptedPlan {
    Plan plan;
    /// what was refused and why, and what is taken though it is refused: a sentence each
    std::vector<std::string> notes;
};

/// Plans that are tried, the first included. Each one is compiled, which takes NVRTC up to 1.4 s. Half of eight
/// processors compile all but the first side by side, so that planning ends within 3 s there.
constexpr int most_plans = 5;

/// The first plan all of whose kernels are accepted. Where none among most_plans is, or the search has no other
/// candidates, it is the one with the fewest refused kernels, and the fastest of those. A note then says so. Once a
/// kernel is refused, `at_a_time` plans are made side by side: those that come next if its candidates are refused
/// again. The result does not depend on that number. Errors: those of the first plan.
Result<AcceptedPlan> accepted_plan(const PlanWithout& plan, const Refusals& refusals, std::size_t at_a_time = 1);

}  // namespace napkin
