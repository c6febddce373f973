#pragma once
// Copies between arrays of any strides and any alignment, by a kernel of threads. It brings views that a program's
// kernels do not take to where they take them, and back.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/gpu/driver.hpp"
#include "run/gpu/launcher.hpp"

namespace napkin::gpu {

/// An array in memory: where it begins, and its strides in values.
struct StridedPlace {
    std::uint64_t address = 0;
    std::vector<std::int64_t> strides;
};

/// Axes that a copy has at most, once those are joined that lie row-major in both arrays.
inline constexpr std::size_t most_copied_axes = 16;

class StridedCopy {
public:
    /// Compiles and loads. Pre: the device's context is current. Errors: those of compile_cuda, gpu-failed.
    static Result<std::shared_ptr<const StridedCopy>> load(const DeviceInfo& device);

    /// The launch that copies the values of an array of these sizes. Error: view-strides, where more than
    /// most_copied_axes are left.
    [[nodiscard]] Result<BoundLaunch> bind(const StridedPlace& to, const StridedPlace& from,
                                           const std::vector<std::int64_t>& sizes, std::int64_t value_bytes) const;

private:
    std::shared_ptr<const Module> module_;
    Function function_ = nullptr;
    int multiprocessors_ = 1;
};

/// One copy, as its kernel takes it: strides in bytes, and units of `unit` bytes.
struct CopyArguments {
    std::uint64_t to = 0, from = 0;
    std::int64_t count = 1, unit = 1, axes = 0;
    std::int64_t sizes[most_copied_axes] = {}, to_strides[most_copied_axes] = {}, from_strides[most_copied_axes] = {};
};
/// The same as StridedCopy::bind, without its launch. A unit is as wide as addresses and strides are aligned, at most a
/// value: where values are misaligned, their bytes are an axis of their own.
Result<CopyArguments> copy_arguments(const StridedPlace& to, const StridedPlace& from,
                                     const std::vector<std::int64_t>& sizes, std::int64_t value_bytes);
/// The text of the kernel, which `strided_copy_name` names.
std::string strided_copy_text();
inline constexpr const char* strided_copy_name = "napkin_strided_copy";

}  // namespace napkin::gpu
