#pragma once
// How many warps a GPU's block has, and how many blocks an SM runs at the same time.
#include "plan/choose.hpp"

namespace napkin {

/// The plan in blocks of threads that is predicted to be the fastest. Pre and errors: those of choose_plan; no-emitter
/// (machine_lacks) where the machine's code is not CUDA's, or its file has no limits of threads.
Result<Plan> choose_blocks(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

/// CUDA programs the machine, and its file has limits of threads.
bool has_cuda_blocks(const Machine& gpu);
/// The same of one kernel of the form, and of what its parts are merged by: in blocks of the shape that is best for it.
/// Pre: has_cuda_blocks, and `options` has ratings.
Result<Plan> choose_blocks_of(std::size_t kernel, const Derived& derived, const Extents& extents, const Machine& gpu,
                              const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
