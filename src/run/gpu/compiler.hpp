#pragma once
// CUDA C++ to machine code by NVRTC, which is opened at run time, and the kernel cache.
#include <string>
#include <vector>

#include "support/result.hpp"

namespace napkin::gpu {

/// What the assembler says of one kernel.
struct AssemblerReport {
    std::string kernel;
    int registers = 0;
    std::int64_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};

struct Cubin {
    std::string code;
    std::vector<AssemblerReport> kernels;
    std::vector<std::string> remarks;  ///< of the assembler that say that code is slower than it was written: serialised wgmma, ignored setmaxnreg
    double compile_seconds = 0;  ///< 0 when from_cache
    bool from_cache = false;
    std::string compiler;  ///< "NVRTC 13.0"
};

/// Compiles for an architecture such as "sm_90a". Results below the normal range of f32 are 0 (-ftz).
/// Errors (machine_lacks): no-cuda-compiler, where NVRTC was looked for. A refusal of emitted code is an InternalError.
Result<Cubin> compile_cuda(const std::string& source, const std::string& architecture, bool use_cache = true);

/// What the assembler's log (ptxas -v) says: a report for each kernel in it.
std::vector<AssemblerReport> reports_in(const std::string& log);
/// Its lines that are remarks. C7508: setmaxnreg ignored; C7510 to C7520: wgmma serialised, and why.
std::vector<std::string> remarks_in(const std::string& log);

/// "NVRTC 13.0 (path)", or the error of compile_cuda.
Result<std::string> cuda_compiler();

}  // namespace napkin::gpu
