#pragma once
// The machine at hand, measured: clocks of the emitter's own vector code, rates of the caches and of memory, what starting threads takes.
#include "machine/machine.hpp"
#include "run/jit.hpp"

namespace napkin {

struct MeasureOptions {
    double seconds = 2;    ///< for timing; compiling what is timed comes on top
    int vector_bytes = 0;  ///< of the code that is described; 0: the widest vectors
    JitOptions jit;
};

/// host_machine() with measured figures in place of estimated ones; each says what was timed, and on which day. What is kept of the
/// repetitions is the shortest, so that a busy neighbour lengthens the measurement and not the figures. Errors: those of jit_compile;
/// no-vectors (machine_lacks) where the processor has none so wide.
Result<Machine> measure_machine(const MeasureOptions& options = {});

}  // namespace napkin
