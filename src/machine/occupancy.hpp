#pragma once
// How many blocks of threads a GPU's core holds at once, and what limits it (paper.md §9: occupancy = active/64).
#include "machine/machine.hpp"

namespace napkin {

/// What a kernel asks for.
struct BlockShape {
    std::int64_t threads = 0;             ///< a block
    std::int64_t registers_a_thread = 0;  ///< of 32 bits
    std::int64_t bytes = 0;               ///< of the core's memory (SMEM, LDS), a block
};

enum class OccupancyLimit : std::uint8_t { blocks, warps, registers, memory };
/// "blocks a core", "warps a core", "registers", "memory".
std::string_view name(OccupancyLimit limit);

struct Occupancy {
    std::int64_t warps_a_block = 0;
    std::int64_t blocks = 0;        ///< resident on a core
    std::int64_t active_warps = 0;  ///< blocks × warps a block
    double occupancy = 0;           ///< active warps / the most that a core holds
    OccupancyLimit limit = OccupancyLimit::warps;
    /// Blocks that each limit alone would allow, in the order of OccupancyLimit. −1: no limit, as nothing of it is
    /// asked for.
    std::int64_t allowed[4] = {};
    friend bool operator==(const Occupancy&, const Occupancy&) = default;
};

/// Errors: no-thread-limits (the machine is a CPU), bad-block (no threads, negative figures, more threads, registers or
/// memory than a block may have; says how many there are).
Result<Occupancy> occupancy(const Machine& machine, const BlockShape& block);

}  // namespace napkin
