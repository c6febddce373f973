#pragma once
// The CPU emitter: a tile program under its plan becomes readable C++ source, one function for each kernel. Pure; it sees nothing but
// the tile program and the plan, and extents are constants of the source.
//
// How emitted code runs: every variable is a buffer of the compute type in the arena of its thread. The plan's vector axis is innermost
// in every variable that carries it. A compute statement is a loop nest with a register block of block_rows × block_vectors; statements
// that carry the vector axis follow each other panel by panel of that axis. Counts are padded to whole blocks: what a padding element
// holds is arbitrary, and it reaches neither a store nor a reduction.
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "tile/program.hpp"

namespace napkin::cpu {

struct EmitOptions {
    int vector_bytes = 64;      ///< of the prelude's vectors; see native_vector_bytes()
    int vector_registers = 32;  ///< that a register block may fill
    /// Entry points are called prefix + index of the kernel.
    std::string prefix = "napkin_kernel_";
};

/// One emitted kernel and what its caller provides.
///   extern "C" void name(const void* const* inputs, void* const* outputs, const int64_t* strides,
///                        int64_t first_group, int64_t last_group, void* arena)
/// runs groups [first_group, last_group). `strides` holds the strides of all dimensions of all inputs, then of all outputs, in values.
/// `arena` is aligned to 64 bytes, belongs to one thread and is initialised with any finite numbers.
struct KernelEntry {
    std::string name;
    std::vector<ArrayId> inputs, outputs;  ///< arrays of TileProgram::diagram, in the order of the entry's tables
    std::vector<bool> packed;              ///< inputs that must come with row-major strides; the others come with any
    std::int64_t groups = 1;
    std::int64_t arena_bytes = 0;
};

struct CpuSource {
    std::string text;  ///< the kernels
    int vector_bytes = 64;
    std::vector<KernelEntry> entries;
};

/// Pre: the plan has an entry for each kernel. Throws InternalError otherwise.
CpuSource emit(const TileProgram& program, const Plan& plan, const EmitOptions& options = {});

/// The source to compile: the prelude, then the kernels.
std::string complete(const CpuSource& source);

}  // namespace napkin::cpu
