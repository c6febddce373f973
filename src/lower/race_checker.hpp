#pragma once
// Whether the warps of a CTA do things in order: a run of the kernel program on vector clocks.
//
// Warps share tiles of the arena and arrays in global memory. What one warp reads, others must have written before.
// What it writes over, others must be done with. Barriers of the CTA see to it. One thread asks for the copy of an
// operand's tile into one of its stages. The copy completes at some later time, and a barrier in shared memory says so
// to those who wait for it. So every read must come after a wait for the copy that it reads, and every copy after all
// reads of what it overwrites. Bulk copies and the tensor cores access shared memory beside the threads, by a proxy of
// their own (PTX ISA, "Proxies"). They see what threads write only after a proxy fence. So a warp that stores through
// staging tiles issues a proxy fence after it has written to one and before the tile is sent. It writes to the tile
// again once it has been read, and ends when all have been.
//
// The run keeps a vector clock (Lamport; Mattern 1989) for each warp: what it knows of every warp's steps. There are
// two consumer warps, and one producer warp where there is a producer role. A barrier of the CTA joins the clocks of
// the consumer warps. A stage that all of them have released brings their clocks to the producer warp that acquires it.
//
// A cluster has the warps of two CTAs, which copy for each other and release what they have copied. Each tile is filled
// by parts of both, in both. Its stage is free when the warps of both have released it. An access to another CTA's
// memory comes after that CTA has made its barriers, and before it ends.
//
// The run goes through at least two CTA tiles. With an operand that is loaded outside of loops, it goes through one
// more than the operand's stages. Every loop runs with no iteration, with one, and with two more than twice the stages,
// as far as its limits allow. Loops without stages run with two. So every stage is filled anew and comes round to the
// next CTA tile. Warps that all wait for each other are a fault, too.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/accesses.hpp"
#include "schedule/scheduled.hpp"

namespace napkin {

struct Fault {
    std::string what;
    /// The warps would have to wait for each other before this step; -1: no such barrier is missing.
    StepId step = {};
    bool inside = false;  ///< not before the step, but inside it (Step::synchronizes_inside)
};

}  // namespace napkin
