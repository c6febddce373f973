#pragma once
// The CPU emitter: a kernel program becomes readable C++ source, one function for each kernel. It prints and decides
// nothing; extents are constants of the source, or arguments (lower/lower.hpp).
//
// How emitted code runs: every variable is a buffer of the compute type in the arena of its thread, or a view of
// memory. A compute statement is a function with its atom's register block. Fused statements follow each other panel by
// panel. Counts are padded to whole blocks. What a padding element holds is arbitrary, and it reaches neither a store
// nor a reduction.
#include <cstdint>
#include <string>
#include <vector>

#include "lower/size_formulas.hpp"

namespace napkin::cpu {

/// One emitted kernel and what its caller provides.
///   extern "C" void name(const void* const* inputs, void* const* outputs, const int64_t* strides,
///                        int64_t first_group, int64_t last_group, void* arena)
/// It runs groups [first_group, last_group). The table `strides` holds the strides of all dimensions of all inputs,
/// then of all outputs, in values, and then the entry's numbers. The `arena` is aligned to 64 bytes, belongs to one
/// thread and is initialised with any finite numbers.
struct KernelEntry {
    std::string name;
    std::vector<ArrayId> inputs, outputs;  ///< arrays of TileProgram::diagram, in the order of the entry's tables
    std::vector<bool> packed, dense;       ///< inputs, outputs that must have row-major strides; the others have any
    std::int64_t groups = 1;
    std::int64_t arena_bytes = 0;
    std::vector<std::int64_t> numbers = {};  ///< that stand behind the strides, where sizes are arguments
    lower::LaunchFormulas formulas = {};     ///< of groups and numbers
};

struct CpuSource {
    std::string text;  ///< the kernels
    int vector_bytes = 64;
    std::vector<KernelEntry> entries;
};

/// Entry points are called prefix + index of the kernel.
CpuSource emit(const lower::LoweredProgram& program, const std::string& prefix = "napkin_kernel_");
CpuSource emit(const ScheduledProgram& program, const std::string& prefix = "napkin_kernel_");

/// The source to compile: the prelude, then the kernels.
std::string complete(const CpuSource& source);

}  // namespace napkin::cpu
