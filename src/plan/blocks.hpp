#pragma once
// Chooses how many warps a GPU's block has, and how many blocks an SM runs at the same time.
#include "plan/choose.hpp"

namespace napkin {

/// The plan in blocks of threads that is predicted to be the fastest.
/// Pre and errors: those of choose_plan; no-emitter (machine_lacks) where CUDA does not program the machine, or its
/// file has no limits of threads.
Result<Plan> choose_blocks(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

/// Whether CUDA programs the machine, and its file has limits of threads.
bool has_cuda_blocks(const Machine& gpu);
/// The same for one kernel of the form and for the merge of its parts, in blocks of the shape that is best for it.
Result<Plan> choose_blocks_of(std::size_t kernel, const Derived& derived, const Extents& extents, const Machine& gpu,
                              const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
