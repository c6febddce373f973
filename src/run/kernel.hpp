#pragma once
// A compiled tile program on the CPU: one or more emitted kernels, their memory and their threads.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emit/cpu/emit.hpp"
#include "run/jit.hpp"
#include "run/workers.hpp"
#include "support/result.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// An array of the caller: where it lies, what it holds, how far neighbours of each axis are apart, in values. No
/// strides: row-major without gaps.
struct KernelInput {
    const void* data = nullptr;
    DType type = DType::f32;
    std::vector<std::int64_t> sizes, strides;
};
struct KernelOutput {
    void* data = nullptr;
    DType type = DType::f32;
    std::vector<std::int64_t> sizes, strides;
};

/// Work between kernels that none of them does, as a library's: before the kernel of that index, or behind all of them.
struct OtherWork {
    std::size_t before = 0;
    std::vector<ArrayId> reads, writes;
    /// Takes the places of arrays, row-major without gaps, and the threads that kernels run on.
    std::function<void(const std::function<void*(ArrayId)>&, Workers&)> run;
};

/// Loaded and ready. Calls of run() from several threads are taken one after the other.
class CpuKernel {
public:
    /// Compiles and loads what emit() gave for the program. Views have the sizes of the diagram's arrays, of which the
    /// program may read neighbouring dimensions as one. Errors: those of jit_compile.
    static Result<std::shared_ptr<const CpuKernel>> load(const Diagram& diagram, const SizedProgram& program,
                                                         const cpu::CpuSource& source, int threads,
                                                         const JitOptions& options = {});
    /// Takes the entries from a module that holds them already, among others; none where there are none. Other work
    /// stands in the order in which it runs; where there is any, arrays are given row-major without gaps.
    static std::shared_ptr<const CpuKernel> bind(const Diagram& diagram, const SizedProgram& program,
                                                 const cpu::CpuSource& source, int threads,
                                                 std::shared_ptr<const JitModule> module,
                                                 std::vector<OtherWork> others = {});
    ~CpuKernel();
    CpuKernel(const CpuKernel&) = delete;
    CpuKernel& operator=(const CpuKernel&) = delete;

    /// Whether the views fit the diagram's inputs and outputs; reads none of their values. Errors: view-count,
    /// view-type, view-sizes, view-strides, view-null; view-overlap where an output shares memory with itself or with
    /// another array.
    [[nodiscard]] Status check(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs) const;

    /// Runs the kernels in order over arrays in the order of the diagram's inputs and outputs. threads 0: as many as it
    /// was loaded for. Errors: those of check; too-little-memory (machine_lacks); index-out-of-range where indices that
    /// a kernel computes lead outside of an array, before the kernel that reads by them runs. Those that are given are
    /// the caller's to look at (index_inputs.hpp).
    [[nodiscard]] Status run(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs,
                             int threads = 0) const;
    /// The same for row-major arrays without gaps.
    [[nodiscard]] Status run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, int threads = 0) const;

    /// Memory that a run takes besides the arrays given to it. It is for arrays between kernels and the variables of
    /// every thread. Arrays that nothing reads any more make room for others. Packed copies of inputs and copies of
    /// outputs that are spread afterwards, both because of strides, come on top.
    [[nodiscard]] std::int64_t extra_bytes(int threads = 0) const;
    [[nodiscard]] std::shared_ptr<const JitModule> module() const;
    [[nodiscard]] int threads() const;  ///< that the plan asks for
    [[nodiscard]] const std::string& source() const;
    [[nodiscard]] double compile_seconds() const;  ///< in the compiler, 0 when from_cache()
    [[nodiscard]] bool from_cache() const;
    [[nodiscard]] const std::vector<std::string>& warnings() const;  ///< of compiling, for the user's eyes

    struct Impl;
    explicit CpuKernel(std::unique_ptr<Impl> impl);

private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace napkin
