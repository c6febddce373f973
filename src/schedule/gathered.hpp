#pragma once
// How a gathered tile is copied (diagram/box.hpp): what of it is contiguous in memory, and in which loops rows are
// gathered.
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

struct GatheredCopy {
    std::vector<Index> source;  ///< VariableFacts::source
    /// The array's last dimension is not gathered: a block is copied at once. Its columns lie along `columns` and its
    /// rows along `rows`, both dimensions of the box; -1: it has one. On a CPU, columns lie along the buffer's vectors,
    /// and rows along what is contiguous in memory. On a GPU, the threads of a warp copy one row, which is contiguous
    /// in memory. Otherwise values are copied one by one.
    bool is_block = false;
    int rows = -1, columns = -1;
    /// the box's other dimensions, outermost first: those by which rows are gathered come before the others
    std::vector<std::size_t> loops;

    /// The box's dimension that is the array's dimension `d`, which is then not gathered; -1: it is gathered.
    [[nodiscard]] int plain(std::size_t d) const { return source[d].single_axis(); }
    /// How many loops are open where the array's dimension is gathered.
    [[nodiscard]] std::size_t depth(std::size_t d) const;
};

/// Pre: the variable gathers and has its shape.
GatheredCopy gathered_copy(const ScheduledKernel& kernel, VariableId id);

/// The index of each of the array's dimensions. Axis p stands for the variable's dimension p (VariableFacts::source).
std::vector<Index> source_of(const ScheduledKernel& kernel, VariableId id);
/// The dimension of the variable along which an index of source_of runs one by one; -1: there is none. The index is
/// that dimension, or a sum of it and of others.
int run_of(const Index& source);
/// The array's dimension along which this one of the variable runs so; -1: there is none.
int array_dimension(const ScheduledKernel& kernel, VariableId id, int dimension);

/// Whether every index that data decide has one value in the tile. Then the tile lies in one block of memory.
bool lies_in_one_block(const ScheduledKernel& kernel, VariableId id);

/// Whether data alone decide what tiles read that differ along the axis. Then they lie in one part of the array.
bool is_of_data_alone(const Variable& variable, AxisId axis);
/// Bytes of that part, for the loads of one output tile.
double bytes_of_part(const ScheduledKernel& kernel, const Variable& variable);

}  // namespace napkin
