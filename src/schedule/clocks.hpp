#pragma once
// Whether copies of operands and the statements that read them are in order: a run of the schedule on clocks.
//
// One thread asks for the copy of an operand's tile into one of its stages; the copy is done at some time after that, and a barrier in
// shared memory says so to those who wait for it. So every read has to come after a wait for the copy that it reads, and every copy after
// all reads of what it overwrites. The run keeps a vector clock (Lamport; Mattern 1989) for each of two warps, the one that asks for copies
// and another one: what is known of a warp's steps, and what a copy's issuer knew. A barrier of the block joins the clocks of all warps, a
// wait joins that of the copy. It goes through two groups, every loop with no turn, one, and two more than twice its stages, where it may
// turn as often, so that every stage is filled anew and comes round to the next group.
#include <string>

#include "schedule/scheduled.hpp"

namespace napkin {

/// What is out of order first; empty: nothing is.
std::string operands_out_of_order(const ScheduledKernel& kernel);

}  // namespace napkin
