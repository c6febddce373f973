#pragma once
// CUDA C++ to machine code by NVRTC, which is opened at run time, and the kernel cache.
#include <string>
#include <vector>

#include "run/gpu/assembler.hpp"
#include "support/result.hpp"

namespace napkin::gpu {

struct Cubin {
    std::string code;
    std::vector<AssemblerReport> kernels;
    std::vector<std::string> remarks;  ///< of the assembler, on any kernel
    double compile_seconds = 0;        ///< 0 when from_cache
    bool from_cache = false;
    std::string compiler = {};  ///< "NVRTC 13.0"
};

/// Compiles for an architecture such as "sm_90a". Results below the normal range of f32 are 0 (-ftz). Errors
/// (machine_lacks): no-cuda-compiler, where NVRTC was looked for; no-such-architecture, which it does not compile for.
/// A refusal of emitted code is an InternalError.
Result<Cubin> compile_cuda(const std::string& source, const std::string& architecture, bool use_cache = true);

/// "NVRTC 13.0 (path)", or the error of compile_cuda.
Result<std::string> cuda_compiler();

}  // namespace napkin::gpu
