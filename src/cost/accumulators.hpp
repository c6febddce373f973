#pragma once
// Where the variables of a kernel lie in a GPU's core. What contractions accumulate lies apart from what is loaded and
// from the outputs that it becomes: in registers, or in a memory of the accumulators' own, in single precision whatever
// type the result has in memory (double precision stays double). What is computed and has an accumulator's axes follows
// from it element by element: it takes the accumulator's place, and its own type's bytes there once the accumulator is
// dead. Everything else lies in the core's memory; so does the second of two computed operands of a contraction, which
// all threads read, and so do values of a row, such as a running maximum, which are few.
#include <vector>

#include "cost/transfers.hpp"
#include "machine/machine.hpp"

namespace napkin {

/// Bytes of a core that accumulators may take; 0 where they lie in its memory as everything else does, as on a CPU.
double accumulator_capacity_bytes(const Machine& machine);

/// The columns of M in bytes, by place.
struct CoreColumns {
    std::vector<MemoryColumn> memory;  ///< of what lies in the core's memory
    /// of the accumulators and what takes their place; empty where they have none of their own
    std::vector<MemoryColumn> accumulators;
};
CoreColumns core_columns(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped,
                         const Machine& machine);

}  // namespace napkin
