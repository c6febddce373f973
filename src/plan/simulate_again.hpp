#pragma once
// A plan's own schedules, simulated once more. What a search keeps of them is only their times.
#include <optional>
#include <vector>

#include "plan/plan.hpp"

namespace napkin {

struct SimulateAgain {
    /// of the core, in place of the machine's. What the file has by the second stays, as rates and latencies of memory
    /// and what launches take; what it has by the clock follows.
    std::optional<double> clock_hz = {};
    bool explains = false;                     ///< with terms
    std::optional<std::int64_t> threads = {};  ///< in place of those that the plan was made for
};

/// By kernel. Pre: the plan is of the form, extents and machine, and the clock is above 0.
std::vector<Simulation> simulate_again(const Derived& derived, const Extents& extents, const Machine& machine,
                                       const Plan& plan, const SimulateAgain& how);

}  // namespace napkin
