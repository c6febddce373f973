#pragma once
// A planned program, compiled and loaded on the machine at hand, that runs on arrays as callers from C describe them.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/array_views.hpp"
#include "run/gpu/callers_kernel.hpp"
#include "run/pipeline.hpp"

namespace napkin {

class LoadedKernel {
public:
    /// Loads what the pipeline made until Pass::emit; where it is for a GPU, on the one of that number. `flags` are
    /// those of napkin_compile. Code whose text is that of
    /// one of `others` is taken over, and not compiled. Errors: those of napkin_compile; InternalError where the
    /// derivation is found wrong.
    static Result<std::shared_ptr<const LoadedKernel>> load(const Compilation& planned, unsigned flags, int device,
                                                            const std::vector<std::shared_ptr<const LoadedKernel>>& others = {});

    /// What the public functions of these names do.
    [[nodiscard]] Status run(Arrays arrays, void* stream) const;
    [[nodiscard]] Status prepare(Arrays arrays) const;
    [[nodiscard]] Status run_at(std::span<void* const> addresses, void* workspace, void* stream) const;

    [[nodiscard]] std::int64_t workspace_bytes() const { return on_gpu_ ? on_gpu_->workspace_bytes() : 0; }
    [[nodiscard]] std::size_t num_copies() const { return on_gpu_ ? on_gpu_->num_copies() : 0; }
    [[nodiscard]] bool shares_code() const { return shares_code_; }  ///< with another one, which was there before
    /// Whether it was compiled from this text, there.
    [[nodiscard]] bool is_of(const std::string& text, Location there) const {
        return text_ == text && place() == there;
    }
    [[nodiscard]] bool from_cache() const;
    [[nodiscard]] double compile_seconds() const;

private:
    [[nodiscard]] Location place() const { return {on_gpu_ ? MachineKind::gpu : MachineKind::cpu, device_}; }
    [[nodiscard]] Status run_on_processor(const std::vector<KernelInput>& inputs,
                                          const std::vector<KernelOutput>& outputs, const void* stream) const;

    std::string text_;  ///< of the code; empty where it is another one's
    bool shares_code_ = false;
    int device_ = 0;
    Diagram diagram_;
    Extents extents_;
    std::vector<TakenArray> taken_;
    std::shared_ptr<const CpuKernel> on_processor_;  ///< one of these two
    std::shared_ptr<const gpu::CallersKernel> on_gpu_;
};

}  // namespace napkin
