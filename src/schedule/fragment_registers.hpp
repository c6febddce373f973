#pragma once
// Registers of a thread in a kernel on the tensor cores: what its fragments take, and what spills. And which sums stay
// with each thread until a loop ends.
#include <cstdint>

#include "schedule/fragments.hpp"

namespace napkin {

/// Whether a variable in registers is a sum over columns that runs through a loop. Every thread then keeps its own
/// columns' part until the loop ends. Nothing in the loop reads it, and its carry only multiplies it by values of its
/// row.
bool is_kept_by_threads(const ScheduledKernel& kernel, VariableId id);
/// Registers of a thread that the variable's fragments take.
std::int64_t fragment_registers(const ScheduledKernel& kernel, VariableId id);
/// The most such registers alive at a step, with those into which a factor is rounded.
std::int64_t most_registers(const ScheduledKernel& kernel);
/// How many of them exceed the thread's budget for fragments, and spill. The search takes no tiles that spill.
std::int64_t spilled_registers(const ScheduledKernel& kernel);
/// Whether the rows of the M axis, the K blocks and the warps are all overrides. Then the user gets tiles that spill.
bool may_spill(const ScheduledKernel& kernel);

}  // namespace napkin
