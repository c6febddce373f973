#pragma once
// A compiled program on the GPU at hand: its cubin, its memory there, its launches.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emit/cuda/emit.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/launcher.hpp"
#include "run/index_inputs.hpp"
#include "run/kernel.hpp"
#include "tile/sizes.hpp"

namespace napkin::gpu {

/// Loaded and ready, with memory on the device for every array of the program.
class GpuKernel {
public:
    /// Compiles for the GPU at hand and loads. Errors: no-gpu, those of compile_cuda, gpu-failed, too-little-memory.
    static Result<std::shared_ptr<GpuKernel>> load(const SizedProgram& program, const cuda::CudaSource& source);
    /// The same of code that was compiled before, among others.
    static Result<std::shared_ptr<GpuKernel>> load(const SizedProgram& program, const cuda::CudaSource& source, Cubin cubin);

    /// Copies the diagram's inputs, row-major without gaps, to the device.
    [[nodiscard]] Status upload(const std::vector<KernelInput>& inputs);
    /// Launches `work` wherever the kernel of that index would be launched. It writes what the kernel writes, or leaves
    /// it to others.
    void replace(std::size_t kernel, std::function<Status()> work) { ready_.at(kernel).instead = std::move(work); }
    /// Where an array that a kernel reads or writes lies on the device, row-major without gaps.
    [[nodiscard]] std::uint64_t address(ArrayId array) const {
        return arrays_.at(static_cast<std::size_t>(array)).address();
    }

    /// Launches the kernels in order; they run after this returns. Errors: gpu-failed.
    [[nodiscard]] Status launch() const;
    /// Waits, and copies the outputs back; none where none are given.
    [[nodiscard]] Status download(const std::vector<KernelOutput>& outputs) const;
    /// Every byte of every output becomes 0xff, which is NaN in most types: what is not written shows.
    [[nodiscard]] Status poison_outputs() const;
    /// upload, poison_outputs, launch, download. Error besides: index-out-of-range, where indices that a kernel
    /// computes lead outside of an array, before the kernel that reads by them runs.
    [[nodiscard]] Status run(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs);

    [[nodiscard]] const Cubin& cubin() const { return launcher_->cubin(); }
    [[nodiscard]] const DeviceInfo& device() const { return device_; }
    /// Memory besides the diagram's inputs and outputs.
    [[nodiscard]] std::int64_t extra_bytes() const { return extra_bytes_; }

private:
    struct Ready {
        BoundLaunch bound;
        std::function<Status()> instead;  ///< none: the kernel
    };
    [[nodiscard]] static Status launch(const Ready& ready);
    [[nodiscard]] const Diagram& diagram() const { return launcher_->program().diagram; }
    [[nodiscard]] const Extents& extents() const { return launcher_->program().extents; }
    Status prepare();
    /// Whether the indices among what a kernel has written lead inside of their arrays.
    [[nodiscard]] Status check_computed(ComputedIndices& indices, const std::vector<ArrayId>& written) const;

    DeviceInfo device_;
    std::shared_ptr<const Launcher> launcher_;
    std::vector<Ready> ready_;
    std::vector<DeviceMemory> arrays_;  ///< by ArrayId
    DeviceMemory scratch_;
    std::vector<ArrayId> deciding_;  ///< arrays that indices read
    std::int64_t extra_bytes_ = 0;
};

}  // namespace napkin::gpu
