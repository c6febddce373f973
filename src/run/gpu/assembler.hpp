#pragma once
// The report of CUDA's assembler (ptxas -v): what it says of each kernel, and which of it a kernel is refused for.
#include <cstdint>
#include <string>
#include <vector>

namespace napkin::gpu {

/// What the assembler says of one kernel. Bytes are those of a thread, shared_bytes those of a block.
struct AssemblerReport {
    std::string kernel;
    int registers = 0, barriers = 0;
    std::int64_t shared_bytes = 0;  ///< that the code itself declares, without what a launch adds
    std::int64_t stack_bytes = 0;   ///< of local memory, what is spilled included
    std::int64_t spill_store_bytes = 0, spill_load_bytes = 0;
    std::vector<std::string> remarks;  ///< those that name the kernel, and those that name none
    friend bool operator==(const AssemblerReport&, const AssemblerReport&) = default;
};

/// What its log says: a report for each kernel.
std::vector<AssemblerReport> reports_in(const std::string& log);

/// Lines of the log that say that code is slower than it was written: C7508 that setmaxnreg is ignored, C7510 to C7520
/// that wgmma is serialised, or waits where nothing asks it to, and why.
std::vector<std::string> remarks_in(const std::string& log);

/// Why a kernel is refused, a clause each ("it spills registers: …"); empty where nothing speaks against it. Kernels
/// are refused for serialised wgmma, an ignored setmaxnreg, spills, and local memory. The log does not say where a
/// kernel spills; what is emitted runs all of its groups in a loop, so that is inside of one.
std::vector<std::string> refusals(const AssemblerReport& report);

/// Local memory is all that the kernel is refused for: an array whose indices only runs know. A function of CUDA's may
/// have one, as the sine does for large arguments, which stays whatever the kernel's sizes are.
bool keeps_memory_alone(const AssemblerReport& report);

}  // namespace napkin::gpu
