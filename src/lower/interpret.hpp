#pragma once
// The interpreter of the kernel program. It executes the statements of the tree with real numbers, one agent for each
// consumer warp and one for the producer. Values in registers lie lane by lane as the machine's layout D says. Operands
// and tiles lie at their bytes of shared memory, so what overlaps there shows. Arithmetic is in double precision.
// Values are rounded where fragments become factors of a product, and where results are stored.
#include <cstdint>

#include "diagram/evaluate.hpp"
#include "lower/kernel_program.hpp"
#include "support/result.hpp"

namespace napkin::lower {

/// When asynchronous work is done. It covers bulk copies, copies of threads and products of warpgroups.
enum class Completion : std::uint8_t {
    early,  ///< as it is asked for; warps go in ascending order
    /// Only once somebody waits for it. Until then its target holds NaN, so a missing wait shows. Warps go in
    /// descending order.
    late,
};

/// Values that move between two levels, and their bytes there.
struct Moved {
    std::int64_t values = 0, bytes = 0;
    void add(std::int64_t count, std::int64_t bytes_each) { values += count, bytes += count * bytes_each; }
    friend bool operator==(const Moved&, const Moved&) = default;
};
/// What a kernel moves. A value that arrives in the shared memories of several CTAs counts once in each. Values past
/// the end of an array do not move.
struct Movement {
    Moved global_to_shared;  ///< bulk copies, copies and loads of threads
    /// The part of it that no statement uses. Copies bring whole rows of 128 bytes, and a tile may end inside of one.
    Moved past_tiles;
    Moved global_to_registers;     ///< reads in place, and states of stream-K that a warp takes over
    Moved shared_to_registers;     ///< operands and tiles that threads read, and matrices that warps load
    Moved shared_to_tensor_cores;  ///< operands of instructions that read shared memory
    Moved registers_to_shared;     ///< results in the arena, and staging tiles
    Moved registers_to_global;     ///< stores of threads, and states of stream-K that a warp leaves
    Moved shared_to_global;        ///< stores from the arena, and bulk copies of staging tiles
    friend bool operator==(const Movement&, const Movement&) = default;
};

/// Runs the kernel of a GPU. `memory` holds its inputs by ArrayId of the tile program's diagram. On return it also
/// holds what the kernel stores; values that it leaves out are unset. Errors: deadlock (which warps wait for what),
/// bad-access (a barrier or a CTA's memory before it is made, or after its end), unsupported (which statement).
Result<Movement> interpret(const KernelProgram& program, Values& memory, Completion completion = Completion::early);

}  // namespace napkin::lower
