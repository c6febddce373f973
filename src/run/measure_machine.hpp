#pragma once
// The machine at hand, measured: clocks of the emitter's own vector code, rates of the caches and of memory, what
// starting threads takes.
#include "machine/machine.hpp"
#include "run/jit.hpp"

namespace napkin {

struct MeasureOptions {
    double seconds = 2;    ///< for timing; compiling what is timed comes on top
    int vector_bytes = 0;  ///< of the code that is described; 0: the widest vectors
    JitOptions jit;
};

struct MeasuredMachine {
    Machine machine;
    double taken = 0;  ///< share of the processor's time that other work had meanwhile, 0 to 1
    /// The other work took so much that even the shortest times may be disturbed. The description says so, too.
    [[nodiscard]] bool disturbed() const { return taken > most_taken; }
    static constexpr double most_taken = 0.1;  ///< share of the time, chosen by hand
};

/// The machine of host_machine() with measured figures in place of estimated ones. Each figure says what was timed, and
/// on which day. The shortest of the repetitions is kept, so that a busy neighbour lengthens the measurement but does
/// not change the figures. The result says what it took. If it disturbs much, three measurements are taken, and each
/// figure is the middle one of them. Errors: those of jit_compile; no-vectors (machine_lacks) where the processor has
/// none so wide.
Result<MeasuredMachine> measure_machine(const MeasureOptions& options = {});

}  // namespace napkin
