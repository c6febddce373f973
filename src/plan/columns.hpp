#pragma once
// Who adds up the rows of a kernel on a matrix unit: threads, or the unit, as a further column of a product (schedule/ones_column.hpp).
#include <cstdint>
#include <map>

#include "plan/complete.hpp"
#include "schedule/simulate.hpp"

namespace napkin {

/// The kernel's simulated time, after its grid is chosen (choose_grid). Where its sums may be columns of products they are, if the simulator finds the kernel
/// faster for it; each of them gets its reason either way. What is by hand stays: atoms, and slots that `by_hand` has. Pre: the kernel is completed, as
/// `completion` says.
Simulation choose_columns(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads,
                          const std::map<StepId, Slot>& by_hand, Completion completion,
                          std::int64_t walk_limit = std::int64_t{1} << 22);

}  // namespace napkin
