#pragma once
// The CUDA emitter: a kernel program in blocks of warps becomes CUDA C++, a function for each kernel. Statements are
// written as for a CPU; a vector is a value of every thread of a warp. What differs is the prelude, the threads that
// run a tile, and the barriers, which the kernel program has.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lower/size_formulas.hpp"

namespace napkin::cuda {

/// The tensor map of an operand that bulk copies bring to shared memory, or of a result that they store from there. It
/// has boxes of an array, with the 128-byte swizzle. Values outside of the array are loaded as zeros, and not stored.
struct TensorMap {
    ArrayId array = -1;
    std::vector<std::int64_t> box;  ///< values by dimension of the array, the last one contiguous
    /// What a copy of windows has (schedule/window_copy.hpp), by dimension of the array. The first and the last are not
    /// used. The box's first extent is then its number of rows.
    struct Windows {
        std::vector<std::int64_t> lower, upper, stride;
    };
    std::optional<Windows> windows = {};
};

/// One emitted kernel and what its caller provides.
///   extern "C" __global__ void name(const Arguments<inputs, outputs, strides> arguments, char* scratch
///                                   [, const TensorMaps<maps> maps])
/// It has namespace-free linkage. Arguments holds the pointers of inputs, then of outputs (at least one of each).
/// Behind them are the strides of all dimensions of all inputs and outputs, in values, then the entry's numbers. There
/// is at least one of both together, eight bytes each.
/// Any grid runs all groups, except with stream-K. A grid of clusters is a multiple of their size.
struct KernelEntry {
    std::string name;
    std::vector<ArrayId> inputs, outputs;  ///< arrays of TileProgram::diagram
    /// inputs and outputs that come with row-major strides, or with those that their tensor maps take; others with any
    std::vector<bool> packed, dense;
    std::vector<bool> in_rows = {};  ///< outputs whose last stride is 1: threads store segments of their rows
    std::int64_t groups = 1;
    std::int64_t blocks = 1;        ///< of the grid that the schedule asks for, as ScheduledKernel::num_blocks says
    int threads = 32, rows = 1;     ///< of a block: so many rows of as many threads
    std::int64_t cluster = 1;       ///< blocks of a cluster, as the kernel itself says: grids are multiples of it
    std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
    std::vector<TensorMap> maps;    ///< none: the kernel has no such parameter
    /// of memory: the arenas of all blocks, what `before` leaves, a queue's counter, and states of split tiles
    std::int64_t scratch_bytes = 0;
    /// Whether a launch finds in its scratch memory what the one before it left, and the first one zeros. No other
    /// kernel may have the same memory then.
    bool keeps_scratch = false;
    /// A kernel with the same parameters that runs before it, in blocks of one row.
    struct Before {
        std::string name;
        std::int64_t blocks = 1;
        int threads = 32;
    };
    std::optional<Before> before = {};
    std::vector<std::int64_t> numbers = {};  ///< arguments behind the strides, where sizes are arguments
    lower::LaunchFormulas formulas = {};     ///< of groups, blocks, scratch_bytes, before->blocks and numbers
};

struct CudaSource {
    std::string text;  ///< the kernels
    bool wide_index = false;
    std::vector<KernelEntry> entries;
};

/// Pre: every kernel of the program is in blocks.
CudaSource emit(const lower::LoweredProgram& program, const std::string& prefix = "napkin_kernel_");
CudaSource emit(const ScheduledProgram& program, const std::string& prefix = "napkin_kernel_");

/// The source to compile: the prelude, then the kernels.
std::string complete(const CudaSource& source);

}  // namespace napkin::cuda
