#pragma once
// What a plan is predicted to take where the core runs at another clock than the machine's file has.
#include "plan/plan.hpp"

namespace napkin {

/// Simulates the plan's own schedules once more at the clock, Hz. What the machine's file has by the second stays, as
/// rates and latencies of memory and what launches take; what it has by the clock follows. Pre: the plan is of the
/// form, extents and machine, and the clock is above 0.
double seconds_at_clock(const Derived& derived, const Extents& extents, const Machine& machine, const Plan& plan,
                        double clock_hz);

}  // namespace napkin
