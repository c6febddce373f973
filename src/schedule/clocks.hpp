#pragma once
// Whether copies of operands and the statements that read them are in order: a run of the schedule on clocks.
//
// One thread asks for the copy of an operand's tile into one of its stages; the copy is done at some time after that, and a barrier in
// shared memory says so to those who wait for it. So every read has to come after a wait for the copy that it reads, and every copy after
// all reads of what it overwrites. The run keeps a vector clock (Lamport; Mattern 1989) for each of two warps that compute and for one of
// the role that asks for copies, where there is one: what is known of every warp's steps. A barrier of the block joins the clocks of the
// warps that compute; a stage that all of them have freed brings their clocks to the role that refills it. The run goes through two groups,
// every loop with no turn, one, and two more than twice its stages, where it may turn as often, so that every stage is filled anew and comes
// round to the next group. Warps that all wait for each other are a fault, too.
#include <string>

#include "schedule/scheduled.hpp"

namespace napkin {

/// What is out of order first; empty: nothing is.
std::string operands_out_of_order(const ScheduledKernel& kernel);

}  // namespace napkin
