#pragma once
// What the warps of a block have, and which of it each step touches: tiles of the arena, the arrays in memory, and what
// warps that share a reduction leave for each other; and registers. Here stands only what is touched; clocks.hpp judges
// whether that is in order.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// A range of the arena, or an array in memory.
struct MemoryRegion {
    enum class Part : std::uint8_t { tile, memory, partials };
    /// that it was first touched for: of its tile, of its array in memory, or what warps leave of it
    VariableId variable = -1;
    Part part = Part::tile;
    ArrayId array = -1;               ///< -1: a range of the arena
    VariableId operand = -1;          ///< whose tiles the range has, all stages; -1: none's
    std::int64_t begin = 0, end = 0;  ///< in values
    std::vector<int> meets = {};      ///< the areas that have something in common with it, itself among them
};

struct MemoryAccess {
    int area = -1;
    bool writes = false;
};

/// What a step touches. Any warp may touch all of it, whichever values the emitter gives it; but within one part of a
/// step no warp meets what another one does.
struct StepAccesses {
    std::vector<MemoryAccess> first;
    /// After the barrier inside (Step::synchronizes_inside), of a step that has two parts: what a load copies over the
    /// zeros of its tile, or what becomes of that which the warps that share a reduction have found.
    std::vector<MemoryAccess> second;
    bool has_parts = false;
    // In a kernel on the matrix unit, what is each thread's or each warp's own:
    bool runs_beside = false;  ///< a product that its warps do not wait for
    /// that it reads or writes, but those in which a product adds to what it finds
    std::vector<VariableId> registers = {};
    std::vector<VariableId> operands = {};  ///< whose tiles it reads
    std::int64_t boxes = 0;                 ///< that a warp sends to memory
};

/// The areas of an operand: copies write its tiles and read its array.
struct OperandRegions {
    int tiles = -1, array = -1;
};

struct Accesses {
    std::vector<MemoryRegion> areas;
    std::vector<StepAccesses> steps;  ///< by step; of loads of operands nothing: their copies are not done by the step
    ByVariable<OperandRegions> operands;
};

std::string name_of(const ScheduledKernel& kernel, const MemoryRegion& area);

/// Pre: the places are applied.
Accesses accesses_of(const ScheduledKernel& kernel);

}  // namespace napkin
