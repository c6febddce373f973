#pragma once
// The code of a program on the GPU at hand, and its launches once it is said where its arrays lie.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"
#include "emit/cuda/emit.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/driver.hpp"
#include "support/result.hpp"
#include "tile/sizes.hpp"

namespace napkin::gpu {

/// One kernel's launch, with the values that its arguments point to: it may be moved, since vectors keep their values
/// where they are, and is not copied.
struct BoundLaunch {
    Launch launch;
    std::optional<Launch> before;           ///< of the kernel that runs before it, with the same arguments
    std::vector<std::uint64_t> parameters;  ///< pointers, then strides
    std::vector<std::uint64_t> scratch;     ///< one address
    std::vector<EncodedMap> maps;

    BoundLaunch() = default;
    BoundLaunch(BoundLaunch&&) = default;
    BoundLaunch& operator=(BoundLaunch&&) = default;
    BoundLaunch(const BoundLaunch&) = delete;
    BoundLaunch& operator=(const BoundLaunch&) = delete;
};

/// Strides of arrays that are not row-major, in values.
using GivenStrides = std::map<ArrayId, std::vector<std::int64_t>>;

/// Launches both, in order, on the stream; returns before they have run. Errors: gpu-failed.
[[nodiscard]] Status launch(const BoundLaunch& bound, Stream stream = nullptr);

/// The source compiled, as far as there is any.
Result<Cubin> compiled(const cuda::CudaSource& source, const std::string& architecture);

/// Loaded code. It has no memory on the device: whoever launches says where everything lies.
class Launcher {
public:
    /// `alike`: one whose code is the same text, and is taken over. Pre: device() has succeeded. Errors: gpu-failed.
    static Result<std::shared_ptr<const Launcher>> load(const SizedProgram& program, const cuda::CudaSource& source,
                                                        Cubin cubin, const Launcher* alike = nullptr);

    /// The arrays that lie in memory: the diagram's inputs and outputs, and what kernels leave for others. Ascending.
    [[nodiscard]] const std::vector<ArrayId>& arrays() const { return arrays_; }
    /// The arrays among these that are neither inputs nor outputs.
    [[nodiscard]] const std::vector<ArrayId>& between() const { return between_; }
    [[nodiscard]] std::int64_t bytes_of(ArrayId array) const;
    /// Bytes of the kernels' scratch memory (KernelEntry::scratch_bytes), which those share that keep nothing there,
    /// since they run one after the other. Zeros before the first launch.
    [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_bytes_; }

    /// Whether the kernels read and write the array with those strides, of its dimensions in the program. Threads copy
    /// any. A tensor map takes those whose last one is 1 and whose others are multiples of 16 bytes.
    [[nodiscard]] bool takes(ArrayId array, const std::vector<std::int64_t>& strides) const;
    /// The launches in order, for arrays at those addresses, by ArrayId. Arrays that have no strides among those given
    /// are row-major. Encodes tensor maps, and does nothing on the device. Pre: takes. Errors: gpu-failed.
    [[nodiscard]] Result<std::vector<BoundLaunch>> bind(const std::vector<std::uint64_t>& addresses,
                                                        std::uint64_t scratch, const GivenStrides& strides = {}) const;

    [[nodiscard]] const Cubin& cubin() const { return cubin_; }
    [[nodiscard]] const std::vector<cuda::KernelEntry>& entries() const { return entries_; }
    [[nodiscard]] const SizedProgram& program() const { return program_; }

private:
    SizedProgram program_;
    Cubin cubin_;
    std::shared_ptr<const Module> module_;
    std::vector<cuda::KernelEntry> entries_;
    std::vector<Function> functions_, before_;  ///< by entry
    std::vector<ArrayId> arrays_, between_;
    std::vector<std::int64_t> scratch_offsets_;  ///< by entry
    std::int64_t scratch_bytes_ = 0;
};

}  // namespace napkin::gpu
