#pragma once
// What a plan is predicted to take where the core runs at another clock than the machine's file has.
#include "plan/plan.hpp"

namespace napkin {

/// Simulates the plan's own schedules once more at the clock, Hz (plan/simulate_again.hpp).
double seconds_at_clock(const Derived& derived, const Extents& extents, const Machine& machine, const Plan& plan,
                        double clock_hz);

}  // namespace napkin
