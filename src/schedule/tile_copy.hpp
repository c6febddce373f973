#pragma once
// How a tile in a buffer is copied from memory and to it, in parts of two dimensions. Columns run along the buffer's
// vectors, and rows along what is contiguous in memory.
#include <cstdint>

#include "schedule/scheduled.hpp"

namespace napkin {

struct TileCopy {
    int rows = -1, columns = -1;  ///< dimensions of the variable; -1: it has none
    std::int64_t part = 1;        ///< values of a full part
    std::int64_t parts = 1;       ///< of a full tile
    /// On a GPU, each warp copies parts of its own, as one part has too few values for all warps.
    bool by_warps = false;
};

/// Pre: the variable has its layout, and is not gathered.
TileCopy tile_copy(const ScheduledKernel& kernel, VariableId id);

}  // namespace napkin
