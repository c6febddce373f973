#pragma once
// Registers of a thread in a kernel on the matrix unit: what its fragments take, what of them is kept for a loop's end,
// and what spills.
#include <cstdint>

#include "schedule/fragments.hpp"

namespace napkin {

/// Whether a variable in registers is a sum of the columns that runs through a loop, and every thread has its own
/// columns' part until the loop ends: nothing in the loop reads it, and it is multiplied by what its row has alike.
bool is_kept_by_threads(const ScheduledKernel& kernel, VariableId id);
/// Registers of a thread that its fragments take.
std::int64_t fragment_registers(const ScheduledKernel& kernel, VariableId id);
/// The most of them that are alive at a step, with those into which an operand is rounded.
std::int64_t most_registers(const ScheduledKernel& kernel);
/// The registers among them that a thread does not have for fragments, which spill. The search takes no tiles that
/// spill.
std::int64_t spilled_registers(const ScheduledKernel& kernel);
/// Whether the rows of the tensor axis, the chunks and the warps are all by hand: then whoever asks for tiles that
/// spill gets them.
bool may_spill(const ScheduledKernel& kernel);

}  // namespace napkin
