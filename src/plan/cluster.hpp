#pragma once
// Whether the blocks of a GPU's kernel run in clusters that load what they have in common once (schedule/cluster.hpp).
#include <cstdint>

#include "plan/candidate_schedules.hpp"
#include "schedule/simulate.hpp"

namespace napkin {

/// Chooses KernelSchedule::cluster of a schedule whose sizes are chosen, where it is open, and says why: pairs of blocks along the axis with which the
/// simulator finds the kernel fastest, where that is faster than without. Returns how many simulations that took.
int choose_cluster(KernelSchedule& schedule, const CandidateSchedules& schedules, const Simulator& model,
                   const PlanOptions& options, std::int64_t walk_limit);

}  // namespace napkin
