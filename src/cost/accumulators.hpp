#pragma once
// Where the variables of a kernel lie in a GPU's core. Accumulators of contractions lie apart from what is loaded and
// from the outputs that they become. They lie in registers or in a memory of their own. They are in single precision
// whatever type the result has in memory (double precision stays double). A computed variable that has an accumulator's
// axes follows from it element by element. So it takes the accumulator's place, and there its own type's bytes once the
// accumulator is dead. Everything else lies in the core's memory. So does the second of two computed operands of a
// contraction, which all threads read. Values of a row, such as a running maximum, lie there too, as they are few.
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
