#pragma once
// Emitted CUDA on the CPU, thread by thread: what a GPU's blocks compute where there is no GPU.
#include <memory>
#include <string>
#include <vector>

#include "emit/cuda/emit.hpp"
#include "run/jit.hpp"

namespace napkin::cpu_case {

/// When what runs beside threads happens, and in which order the threads of a block go from barrier to barrier. What a
/// kernel computes must not depend on any of it.
struct Timing {
    /// to shared memory: as they are waited for, bulk copies as nobody goes on without them; else at once
    bool copies_late = false;
    /// products and copies from shared memory read it, and make what they make, as they are waited for
    bool results_late = false;
    bool backwards = false;  ///< the last block and the last thread first
};

/// What stands for a tensor map: a packed array, the innermost dimension first, in boxes with rows of 128 bytes,
/// swizzled by 16 of them.
struct BulkMap {
    const void* array = nullptr;
    std::int16_t value_bytes = 0, rank = 0, swizzle_bits = 3, has_windows = 0;
    std::int64_t strides[5] = {};  ///< in bytes
    std::int32_t sizes[5] = {}, box[5] = {};
    /// of windows: of all dimensions but the first and the last
    std::int16_t lower[3] = {}, upper[3] = {}, stride[3] = {};
};
BulkMap bulk_map(const void* array, DType type, const std::vector<std::int64_t>& sizes, const cuda::TensorMap& map);

/// Compiles the kernels for the CPU, as for a GPU with this __CUDA_ARCH__. Throws std::runtime_error where that fails.
std::shared_ptr<const JitModule> compiled_for_cpu(const cuda::CudaSource& source, int architecture = 900);

/// Runs one of them, after what runs before it. `arguments` are the pointers of inputs, then of outputs, then all
/// strides, and `maps` those of entry.maps, as KernelEntry says. False where its threads wait for each other for ever.
bool run_on_cpu(const JitModule& module, const cuda::KernelEntry& entry, const std::vector<std::uint64_t>& arguments,
                Timing timing, const std::vector<BulkMap>& maps = {});

}  // namespace napkin::cpu_case
