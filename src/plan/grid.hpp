#pragma once
// How many blocks a GPU starts for groups of which some run more chunks than others: one for each group, which the
// hardware starts as another one ends, or as many as run at once, which take the groups in turn and copy for the next
// one meanwhile.
#include "schedule/simulate.hpp"

namespace napkin {

/// Chooses KernelSchedule::grid where it is open and a role copies, and says why; the time of the kernel with the grid
/// that it then has.
Simulation choose_grid(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads,
                       std::int64_t walk_limit = std::int64_t{1} << 22);

/// Cuts groups of the last rounds where KernelSchedule::dealing is open, the machine's file says what blocks that meet
/// take, and that is faster than whole ones, which take `whole`; the time of the kernel as it is then.
Simulation choose_stream_k(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, Simulation whole,
                           std::int64_t walk_limit = std::int64_t{1} << 22);

}  // namespace napkin
