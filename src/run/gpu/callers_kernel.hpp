#pragma once
// A compiled program on the GPU at hand that runs in the caller's memory, on the caller's stream.
//
// A launch neither allocates on the device nor waits for it: all memory besides the caller's arrays is the workspace,
// which is there before the first launch. Launches of one program that share a workspace run one after the other:
// whoever launches on several streams orders them. What a launch needs of the addresses, as tensor maps, is encoded
// once for each tuple of them, and kept for the last ones. The driver copies a launch's arguments, also into a graph,
// so that nothing has to be kept for a launch that is under way.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "diagram/diagram.hpp"
#include "run/gpu/launcher.hpp"
#include "run/gpu/strided_copy.hpp"

namespace napkin::gpu {

/// Where every address of an array must be a multiple: bulk copies and tensor maps take no other (CUDA Driver API,
/// cuTensorMapEncodeTiled; PTX ISA, cp.async).
constexpr std::uint64_t array_alignment = 16;
/// Alignment of what the workspace holds, and of its own address: what the driver's allocations have.
constexpr std::int64_t workspace_alignment = 256;

class CallersKernel {
public:
    /// Compiles for the GPU of that number and loads there; with a workspace of its own where `has_workspace`.
    /// `alike`: a kernel there whose code is the same text, and is taken over. Errors: no-gpu, those of compile_cuda,
    /// gpu-failed, too-little-memory.
    static Result<std::shared_ptr<const CallersKernel>> load(const Diagram& diagram, const SizedProgram& program,
                                                             const cuda::CudaSource& source, int device,
                                                             bool has_workspace, const CallersKernel* alike = nullptr);
    ~CallersKernel();
    CallersKernel(const CallersKernel&) = delete;
    CallersKernel& operator=(const CallersKernel&) = delete;

    /// Launches on arrays at those addresses, and returns before the kernels have run. The addresses are the diagram's
    /// inputs and then its outputs. `strides`: none, or for each of them its strides in values, or null where it lies
    /// row-major without gaps. Memory at `workspace` has workspace_bytes() and held zeros
    /// before its first launch. 0: the program's own. A view whose strides or address no kernel takes is copied to or
    /// from memory that the stream has meanwhile. Errors: view-count, view-null, view-offset, view-strides,
    /// view-overlap, no-workspace, gpu-failed, too-little-memory.
    [[nodiscard]] Status launch(std::span<const std::uint64_t> addresses, std::uint64_t workspace, Stream stream,
                                std::span<const std::int64_t* const> strides = {}) const;

    /// What such a launch needs is there afterwards, so that a stream that is being captured takes it. Pre: a workspace
    /// of its own, and as many addresses as arrays. Errors: those of launch.
    [[nodiscard]] Status prepare(std::span<const std::uint64_t> addresses, std::span<const std::int64_t* const> strides) const;

    [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }
    /// Views that launches copied.
    [[nodiscard]] std::size_t num_copies() const { return num_copies_.load(); }
    [[nodiscard]] const Cubin& cubin() const { return launcher_->cubin(); }

private:
    using StridesOfCall = std::span<const std::int64_t* const>;
    using Strides = std::vector<std::int64_t>;
    struct Binding {
        std::vector<std::uint64_t> addresses;
        std::vector<std::vector<std::int64_t>> strides;  ///< the caller's, or row-major ones
        std::uint64_t workspace = 0;
        std::vector<std::size_t> copied;    ///< of the arrays, ascending: no kernel takes their views
        std::vector<BoundLaunch> launches;  ///< none where arrays are copied
    };
    CallersKernel(std::shared_ptr<const Launcher> launcher, const Diagram& diagram, int device);
    [[nodiscard]] Result<std::shared_ptr<const Binding>> bound(std::span<const std::uint64_t> addresses,
                                                               StridesOfCall strides, std::uint64_t workspace) const;
    [[nodiscard]] Result<std::shared_ptr<const Binding>> bind(std::span<const std::uint64_t> addresses,
                                                              StridesOfCall strides, std::uint64_t workspace) const;
    /// The strides of the program's array; none where its kernels do not take such a view. Pre: no fault.
    [[nodiscard]] std::optional<Strides> taken_strides(std::size_t array, std::uint64_t address, const Strides& strides) const;
    /// `dense`: where arrays that are copied lie meanwhile, row-major without gaps.
    [[nodiscard]] Result<std::vector<BoundLaunch>> launches_at(const Binding& binding,
                                                               std::span<const std::uint64_t> dense) const;
    [[nodiscard]] Status launch_by_copies(const Binding& binding, const StridedCopy& copier, Stream stream) const;
    [[nodiscard]] bool is_of(const Binding& binding, std::span<const std::uint64_t> addresses, StridesOfCall strides,
                             std::uint64_t workspace) const;
    /// What a thread launched last at such addresses, which it finds without a lock. It owns no memory of the device,
    /// so that it may outlive its kernel.
    struct OfThread {
        std::uint64_t kernel = 0;
        std::shared_ptr<const Binding> binding;
    };
    [[nodiscard]] OfThread& slot_of_thread(std::span<const std::uint64_t> addresses) const;
    [[nodiscard]] std::vector<Diagnostic> faults(std::span<const std::uint64_t> addresses,
                                                 const std::vector<std::vector<std::int64_t>>& strides,
                                                 std::uint64_t workspace) const;

    std::shared_ptr<const Launcher> launcher_;
    int device_;
    std::uint64_t number_;                                  ///< of this kernel among all of the process, from 1
    std::vector<ArrayId> given_;                            ///< inputs, then outputs
    std::vector<std::vector<std::int64_t>> sizes_, dense_;  ///< of these as the caller has them, and row-major strides
    std::vector<std::int64_t> offsets_;  ///< in the workspace, of the arrays in between, in their order
    std::int64_t scratch_offset_ = 0, workspace_bytes_ = 0;
    DeviceMemory own_;
    mutable std::atomic<std::size_t> num_copies_ = 0;

    mutable std::mutex mutex_;                                    ///< of what follows
    mutable std::shared_ptr<const StridedCopy> copy_;             ///< there once a view is copied
    mutable std::vector<std::shared_ptr<const Binding>> recent_;  ///< at most most_recent
    mutable std::size_t oldest_ = 0;
};

}  // namespace napkin::gpu
