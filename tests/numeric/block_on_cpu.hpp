#pragma once
// Emitted CUDA on the CPU, thread by thread: what a GPU's blocks compute where there is no GPU. Kernels without bulk copies alone.
#include <memory>
#include <string>
#include <vector>

#include "emit/cuda/emit.hpp"
#include "run/jit.hpp"

namespace napkin::cpu_case {

/// When a thread's copies to shared memory are there, and in which order the threads of a block go from barrier to barrier. What a kernel
/// computes must not depend on either.
struct Timing {
    bool copies_late = false;  ///< only as they are waited for; else as they are asked for
    bool backwards = false;    ///< the last thread first
};

/// Compiles the kernels for the CPU. Throws std::runtime_error where that fails.
std::shared_ptr<const JitModule> compiled_for_cpu(const cuda::CudaSource& source);

/// Runs one of them. `arguments` are the pointers of inputs, then of outputs, then all strides, as KernelEntry says. False where its threads
/// wait for each other for ever.
bool run_on_cpu(const JitModule& module, const cuda::KernelEntry& entry, const std::vector<std::uint64_t>& arguments,
                Timing timing);

}  // namespace napkin::cpu_case
