#pragma once
// Whether the warps of a block do things in order: a run of the schedule on clocks.
//
// Warps share tiles of the arena and arrays in memory. What one of them reads others have to have written before, and
// what it writes they have to be done with; barriers of the block see to it. One thread asks for the copy of an
// operand's tile into one of its stages; the copy is done at some time after that, and a barrier in shared memory says
// so to those who wait for it. So every read has to come after a wait for the copy that it reads, and every copy after
// all reads of what it overwrites. Bulk copies and the matrix unit go to shared memory beside the threads, by a proxy
// of their own (PTX ISA, "Proxies"): what threads write, they see after a fence alone. So a warp that stores by boxes
// fences_proxy what it has written to one before it is sent, writes to it again once it has been read, and ends when
// all have been.
//
// The run keeps a vector clock (Lamport; Mattern 1989) for each of two warps that compute and for one of the role that
// asks for copies, where there is one: what is known of every warp's steps. A barrier of the block joins the clocks of
// the warps that compute; a stage that all of them have freed brings their clocks to the role that acquires it. Of a
// cluster it has the warps of two blocks, which copy for each other and free what they have copied: each tile is filled
// by parts of both, in both, and its stage is free when the warps of both have said so; what reaches into another
// block's memory comes after that block has made its barriers, and before it ends. The run goes through two groups,
// every loop with no turn, one, and two more than twice its stages, where it may turn as often, so that every stage is
// filled anew and comes round to the next group. Warps that all wait for each other are a fault, too.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/accesses.hpp"
#include "schedule/scheduled.hpp"

namespace napkin {

struct Fault {
    std::string what;
    StepId step = {};     ///< before which the warps would have to wait for each other; -1: no such barrier is missing
    bool inside = false;  ///< not before it, but inside (Step::synchronizes_inside)
};

/// What is out of order first; none: nothing is. Pre: the kernel is in blocks; `touches` are its own.
std::optional<Fault> first_race(const ScheduledKernel& kernel, const Accesses& touches);
/// Whether nothing is. `suspect`: how often loops turn in the run that found the last fault, by loop, which is looked
/// at first; empty: none has.
bool is_race_free(const ScheduledKernel& kernel, const Accesses& touches, std::vector<std::int64_t>& suspect);
/// The same in words; empty: nothing is.
std::string race_text(const ScheduledKernel& kernel);

}  // namespace napkin
