#pragma once
// A planned program, loaded on each GPU where its arrays lie.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "api/loaded_kernel.hpp"
#include "run/gpu/driver.hpp"
#include "run/pipeline.hpp"

namespace napkin {

class KernelsByDevice {
public:
    /// Loads on the first GPU, or on the processor. `flags` are those of napkin_compile. Errors: those of
    /// LoadedKernel::load.
    static Result<std::unique_ptr<const KernelsByDevice>> load(std::shared_ptr<const Compilation> planned, unsigned flags);

    /// The kernel on the GPU of that number, loaded where nobody asked for it before. Errors: those of
    /// LoadedKernel::load, among them other-gpu, where the GPU is another one than the plan is for.
    Result<const LoadedKernel*> on(int device) const;
    /// The kernel where arrays that begin at these addresses lie.
    Result<const LoadedKernel*> at(std::span<void* const> addresses) const;
    [[nodiscard]] const LoadedKernel& first() const { return *kernels_[0].load(std::memory_order_acquire); }

private:
    std::shared_ptr<const Compilation> planned_;
    unsigned flags_ = 0;
    mutable std::array<std::atomic<const LoadedKernel*>, gpu::most_devices> kernels_ = {};
    mutable std::mutex loading_;  ///< of what follows
    mutable std::array<std::shared_ptr<const LoadedKernel>, gpu::most_devices> owned_;
};

}  // namespace napkin
