#pragma once
// How a tile is copied of which data decide what it holds (diagram/box.hpp): what of it lies beside each other in
// memory, and in which loops rows are looked up.
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

struct GatheredCopy {
    std::vector<Index> source;  ///< VariableFacts::source
    /// The array's last dimension is not looked up: a block is copied at once, with columns along `columns` and rows
    /// along `rows`, both dimensions of the box; -1: one. On a CPU columns are along the buffer's vectors and rows
    /// along what is contiguous in memory; on a GPU the threads of a warp copy one row, contiguous in memory. Else
    /// values are copied one by one.
    bool is_block = false;
    int rows = -1, columns = -1;
    /// the box's other dimensions, outermost first: those that rows are looked up by are
    std::vector<std::size_t> loops;

    /// The dimension of the box that the array's dimension is, and nothing is looked up by; -1: it is looked up.
    [[nodiscard]] int plain(std::size_t d) const { return source[d].single_axis(); }
    /// How many loops are open where the array's dimension is looked up.
    [[nodiscard]] std::size_t depth(std::size_t d) const;
};

/// Pre: the variable gathers and has its shape.
GatheredCopy gathered_copy(const ScheduledKernel& kernel, VariableId id);

/// Every index that data decide on has one value in the tile, which then lies in one block of memory.
bool lies_in_one_block(const ScheduledKernel& kernel, VariableId id);

}  // namespace napkin
