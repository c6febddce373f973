#pragma once
// Sums over a stream whose register blocks stay where they are (MemorySpace::accumulators), in a CTA without tensor
// cores.
//
// Each warp, or each thread, has at most one register block of the sum's tile. Its accumulators go on from one
// iteration to the next. They take no shared memory, and no iteration loads or stores them. At the end each worker
// stores its own block to memory. Maps that read the sum go through the same blocks, and find it where it is.
#include "schedule/scheduled.hpp"

namespace napkin {

/// The step that adds to the variable, where it may lie in accumulators. Null: it may not. Pre: the atoms are chosen.
const Step* accumulating_step(const ScheduledKernel& kernel, VariableId id);
/// The sum through whose register blocks the map may go, so that it reads accumulators. Null: there is none. Pre: the
/// atoms of the steps before it are chosen.
const Step* followed_sum(const ScheduledKernel& kernel, const Step& map);

}  // namespace napkin
