#pragma once
// NVIDIA's driver, opened at run time: devices, memory, modules, launches, events. Every failure is an error as a
// value.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emit/cuda/emit.hpp"
#include "support/dtype.hpp"
#include "support/result.hpp"

namespace napkin::gpu {

/// More than a computer has. A device of a higher number is none.
inline constexpr int most_devices = 64;

/// A GPU that kernels run on, in the driver's order, which CUDA_VISIBLE_DEVICES decides.
struct DeviceInfo {
    int number = 0;
    std::string name;          ///< "NVIDIA H200"
    int major = 0, minor = 0;  ///< compute capability
    int multiprocessors = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t block_bytes = 0;                    ///< of shared memory that a block may ask for
    int driver_version = 0;                          ///< of CUDA that the driver has: 13000 is 13.0
    [[nodiscard]] std::string architecture() const;  ///< "sm_90a" on Hopper, else "sm_" and the capability
};

/// Memory on the device, given back with its last owner.
class DeviceMemory {
public:
    DeviceMemory() = default;
    explicit DeviceMemory(std::uint64_t address);
    ~DeviceMemory();
    DeviceMemory(DeviceMemory&& other) noexcept : address_(other.address_) { other.address_ = 0; }
    DeviceMemory& operator=(DeviceMemory&& other) noexcept;
    [[nodiscard]] std::uint64_t address() const { return address_; }

private:
    std::uint64_t address_ = 0;
};

using Function = void*;
/// A CUstream; null is the default stream.
using Stream = void*;

/// A loaded cubin.
class Module {
public:
    explicit Module(void* handle) : handle_(handle) {}
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    [[nodiscard]] void* handle() const { return handle_; }

private:
    void* handle_;
};

struct Launch {
    Function function = nullptr;
    std::int64_t blocks = 1;
    int threads = 32, rows = 1;
    std::int64_t shared_bytes = 0;
    std::vector<void*> arguments;  ///< pointers to each parameter's value
};

/// A tensor map as the driver encodes it (CUtensorMap).
struct alignas(64) EncodedMap {
    char bytes[128] = {};
};

// What tensor maps are, and what makes them (CUDA Driver API, cuTensorMapEncodeTiled).
inline constexpr std::int64_t map_stride_bytes = 16, most_map_stride_bytes = std::int64_t{1} << 40;
inline constexpr int no_interleave = 0, swizzle_128 = 3, promote_128 = 2, promote_256 = 3, zeros_outside = 0;
/// Lines are asked for in pairs, which reads products' operands some 3% faster. Rows that begin inside a sector share
/// lines with their neighbours. Pairs then bring much that is not used. On one H200 a product of 4096×4096×4104 takes
/// 281 µs with them, 240 without.
inline constexpr std::int64_t sector_bytes = 32;
inline constexpr int max_dynamic_shared_size = 8;  ///< CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

/// The driver with a device's primary context, which becomes current for the thread that asks first, unless it has
/// another one. Error no-gpu (machine_lacks): no driver, or no device of that number, in the driver's own words.
Result<DeviceInfo> device(int number = 0);
/// How many devices there are; 0 without a driver.
int num_devices();
/// Whose memory an address is; the first device's where the driver does not know it, or has one device. Pre: device()
/// has succeeded.
int device_of(std::uint64_t address);

/// The primary context of a device is current for this thread while this lives; afterwards, what was before. Nothing
/// where device() does not succeed.
class InPrimaryContext {
public:
    explicit InPrimaryContext(int device = 0);
    ~InPrimaryContext();
    InPrimaryContext(const InPrimaryContext&) = delete;
    InPrimaryContext& operator=(const InPrimaryContext&) = delete;

private:
    bool pushed_ = false;
};

/// The thread's context is afterwards what it was before, whatever device() makes of it.
class KeepsContext {
public:
    KeepsContext();
    ~KeepsContext();
    KeepsContext(const KeepsContext&) = delete;
    KeepsContext& operator=(const KeepsContext&) = delete;

private:
    void* before_ = nullptr;
};

// All of the following need device() to have succeeded. Errors: gpu-failed (machine_lacks) with the driver's words, and
// too-little-memory where memory ran out.
Result<DeviceMemory> allocate(std::int64_t bytes);
/// Memory for what the stream runs between this and free_on; a stream that is being captured takes both.
Result<std::uint64_t> allocate_on(Stream stream, std::int64_t bytes);
void free_on(Stream stream, std::uint64_t address);
Status copy_to(const DeviceMemory& to, const void* from, std::int64_t bytes);
Status copy_from(void* to, const DeviceMemory& from, std::int64_t bytes);
/// Every byte becomes `value`.
Status fill(const DeviceMemory& memory, unsigned char value, std::int64_t bytes);
Result<std::shared_ptr<const Module>> load(const std::string& cubin);
/// The kernel of that name, allowed as much dynamic shared memory as it asks for.
Result<Function> function(const Module& module, const std::string& name, std::int64_t shared_bytes);
/// Returns before the kernel has run. Neither allocates nor waits, so that a stream that is being captured takes it.
Status launch(const Launch& launch, Stream stream = nullptr);
/// The map of a row-major array at that address, from which boxes or windows are copied with the 128-byte swizzle.
/// Sizes and strides in the order of the array's dimensions, the last one contiguous. Pre: what cuTensorMapEncodeTiled
/// or cuTensorMapEncodeIm2col asks for.
Result<EncodedMap> encode_map(std::uint64_t address, DType type, const std::vector<std::int64_t>& sizes,
                              const std::vector<std::int64_t>& strides, const cuda::TensorMap& map);
/// Waits for all that was launched.
Status synchronize();
/// Seconds that the device takes for what `work` launches, between two events.
Result<double> seconds_of(const std::function<Status()>& work);

}  // namespace napkin::gpu
