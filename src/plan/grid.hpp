#pragma once
// How many blocks a GPU starts for CTA tiles of which some run more K blocks than others. It starts one for each tile,
// which the hardware starts as another one ends, or as many as run at once. These persistent blocks take one tile after
// the other, and copy for the next one meanwhile.
#include "schedule/simulate.hpp"

namespace napkin {

/// Chooses KernelSchedule::grid where it is open and a role copies, and says why. Returns the time of the kernel with
/// that grid.
Simulation choose_grid(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads,
                       std::int64_t walk_limit = std::int64_t{1} << 22);

/// Chooses stream-K for the tiles of the last rounds, where `KernelSchedule::scheduler` is open. The machine's file
/// must have the seconds of a handover between blocks. Stream-K must also be faster than whole tiles, which take
/// `whole`. Returns the time of the kernel as it is then.
Simulation choose_stream_k(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, Simulation whole,
                           std::int64_t walk_limit = std::int64_t{1} << 22);

}  // namespace napkin
