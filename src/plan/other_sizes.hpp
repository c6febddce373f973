#pragma once
// A plan whose schedules are read at other sizes than those that they were made for. Nothing is searched.
#include <optional>

#include "machine/machine.hpp"
#include "plan/plan.hpp"

namespace napkin {

/// The plan `read` at other sizes with as many CTAs or threads as its tiles need. None where it would cut a stream into
/// more parts than it has K blocks, or where a schedule breaks a rule then. Times are those of the plan that was made.
/// Pre: both have the same kernels; `made` is of the sizes that it was made for.
std::optional<Plan> with_blocks_for(const Plan& made, Plan read, const Machine& machine);

}  // namespace napkin
