#pragma once
// What each step of a CTA accesses: tiles in the shared-memory arena, arrays in global memory, partials of reductions
// that warps share, and registers. This file only lists accesses. race_checker.hpp judges whether they are in order.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// A range of the arena, or an array in global memory.
struct MemoryRegion {
    enum class Part : std::uint8_t { tile, memory, partials };
    /// The variable whose access first made the region. `part` says whether by its tile, its array or its partials.
    VariableId variable = -1;
    Part part = Part::tile;
    ArrayId array = -1;               ///< -1: a range of the arena
    VariableId operand = -1;          ///< the operand whose tiles, of all stages, the range holds; -1: none
    std::int64_t begin = 0, end = 0;  ///< in values
    std::vector<int> meets = {};      ///< regions that overlap it, itself among them
};

struct MemoryAccess {
    int area = -1;
    bool writes = false;
};

/// What a step accesses. Any warp may access all of it, whichever values the emitter assigns to it. Within one part of
/// a step, the accesses of different warps do not conflict.
struct StepAccesses {
    std::vector<MemoryAccess> first;
    /// Accesses after the barrier inside a step with two parts (Step::synchronizes_inside). A load copies over the
    /// zeros of its tile. A reduction that warps share combines their partials.
    std::vector<MemoryAccess> second;
    bool has_parts = false;
    // For kernels on tensor cores, accesses of one thread or one warp to what is its own:
    bool runs_beside = false;  ///< an asynchronous product, which its warps do not wait for
    /// Register variables that it reads or writes, except an accumulator to which an asynchronous product only adds.
    std::vector<VariableId> registers = {};
    std::vector<VariableId> operands = {};  ///< operands whose tiles it reads
    std::int64_t boxes = 0;                 ///< staging tiles that a warp sends to global memory
};

/// Regions of an operand: copies read its array and write its tiles.
struct OperandRegions {
    int tiles = -1, array = -1;
};

struct Accesses {
    std::vector<MemoryRegion> areas;
    /// By step; empty for loads of operands, whose copies are not done by the step.
    std::vector<StepAccesses> steps;
    ByVariable<OperandRegions> operands;
};

std::string name_of(const ScheduledKernel& kernel, const MemoryRegion& area);

/// Pre: the places are applied.
Accesses accesses_of(const ScheduledKernel& kernel);

}  // namespace napkin
