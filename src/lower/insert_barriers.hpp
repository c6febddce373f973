#pragma once
// Insert_barriers: the waits, releases and barriers of a kernel program. Each stands where the race checker finds
// something out of order without it, and nowhere else.
#include "schedule/scheduled.hpp"

namespace napkin {

/// Chooses all that orders the warps of a kernel in CTAs: Step::synchronizes and what stands beside it in
/// scheduled.hpp. Only this function decides it. Pre: the other passes of the schedule are applied.
void insert_barriers(ScheduledKernel& kernel);

}  // namespace napkin
