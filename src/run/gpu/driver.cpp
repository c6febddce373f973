#include "run/gpu/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "run/library.hpp"

namespace napkin::gpu {
namespace {

// What of the driver's interface is called, with its constants (CUDA Driver API, cuda.h).
using Code = int;
constexpr Code success = 0, out_of_memory = 2;
enum Attribute : int {
    multiprocessors_attribute = 16,
    capability_major = 75,
    capability_minor = 76,
    shared_memory_a_block_optin = 97
};
constexpr int ordinal_of_pointer = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL

struct Driver {
    SharedLibrary library{{"libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1"}};
    Code (*init)(unsigned) = library.function("cuInit");
    Code (*error_string)(Code, const char**) = library.function("cuGetErrorString");
    Code (*driver_version)(int*) = library.function("cuDriverGetVersion");
    Code (*device_count)(int*) = library.function("cuDeviceGetCount");
    Code (*device_get)(int*, int) = library.function("cuDeviceGet");
    Code (*device_name)(char*, int, int) = library.function("cuDeviceGetName");
    Code (*device_memory)(std::size_t*, int) = library.function("cuDeviceTotalMem_v2");
    Code (*attribute)(int*, int, int) = library.function("cuDeviceGetAttribute");
    Code (*retain)(void**, int) = library.function("cuDevicePrimaryCtxRetain");
    Code (*set_current)(void*) = library.function("cuCtxSetCurrent");
    Code (*get_current)(void**) = library.function("cuCtxGetCurrent");
    Code (*push_current)(void*) = library.function("cuCtxPushCurrent_v2");
    Code (*pop_current)(void**) = library.function("cuCtxPopCurrent_v2");
    Code (*wait)() = library.function("cuCtxSynchronize");
    Code (*pointer_attribute)(void*, int, std::uint64_t) = library.function("cuPointerGetAttribute");
    Code (*mem_alloc_async)(std::uint64_t*, std::size_t, void*) = library.function("cuMemAllocAsync");
    Code (*mem_free_async)(std::uint64_t, void*) = library.function("cuMemFreeAsync");
    Code (*mem_alloc)(std::uint64_t*, std::size_t) = library.function("cuMemAlloc_v2");
    Code (*mem_free)(std::uint64_t) = library.function("cuMemFree_v2");
    Code (*to_device)(std::uint64_t, const void*, std::size_t) = library.function("cuMemcpyHtoD_v2");
    Code (*to_host)(void*, std::uint64_t, std::size_t) = library.function("cuMemcpyDtoH_v2");
    Code (*set)(std::uint64_t, unsigned char, std::size_t) = library.function("cuMemsetD8_v2");
    Code (*module_load)(void**, const void*) = library.function("cuModuleLoadData");
    Code (*module_unload)(void*) = library.function("cuModuleUnload");
    Code (*module_function)(void**, void*, const char*) = library.function("cuModuleGetFunction");
    Code (*function_attribute)(void*, int, int) = library.function("cuFuncSetAttribute");
    Code (*launch_kernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                          void**) = library.function("cuLaunchKernel");
    Code (*encode_tiled)(void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*,
                         const std::uint32_t*, int, int, int, int) = library.function("cuTensorMapEncodeTiled");
    Code (*encode_im2col)(void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*, const int*,
                          const int*, std::uint32_t, std::uint32_t, const std::uint32_t*, int, int, int,
                          int) = library.function("cuTensorMapEncodeIm2col");
    Code (*event_create)(void**, unsigned) = library.function("cuEventCreate");
    Code (*event_destroy)(void*) = library.function("cuEventDestroy_v2");
    Code (*event_record)(void*, void*) = library.function("cuEventRecord");
    Code (*event_wait)(void*) = library.function("cuEventSynchronize");
    Code (*event_elapsed)(float*, void*, void*) = library.function("cuEventElapsedTime");

    /// All of it is there: a driver that lacks one is older than the oldest GPU that kernels are emitted for.
    [[nodiscard]] bool is_whole() const {
        return library.is_open() && init && error_string && driver_version && device_count && device_get &&
               device_name && device_memory && attribute && retain && set_current && get_current && push_current &&
               pop_current && wait && pointer_attribute && mem_alloc_async && mem_free_async && mem_alloc && mem_free &&
               to_device && to_host && set && module_load && module_unload && module_function && function_attribute &&
               launch_kernel && encode_tiled && encode_im2col && event_create && event_destroy && event_record &&
               event_wait && event_elapsed;
    }
};

const Driver& driver() {
    static const Driver* const it = new Driver;  // it outlives every static that frees device memory
    return *it;
}

std::string words(Code code) {
    const char* text = nullptr;
    if (driver().error_string) static_cast<void>(driver().error_string(code, &text));
    return text != nullptr ? fmt::format("{} (CUDA error {})", text, code) : fmt::format("CUDA error {}", code);
}

Diagnostic no_gpu(const std::string& why) {
    return Diagnostic{.code = "no-gpu",
                      .message = "there is no GPU that kernels could run on: " + why,
                      .expected = "an NVIDIA GPU with its driver",
                      .hint = "'napkin plan', 'napkin emit' and 'napkin cost' take --machine h200 without one",
                      .exit_code = ExitCode::machine_lacks};
}

Status checked(Code code, const std::string& what) {
    if (code == success) return Done{};
    return Diagnostic{.code = code == out_of_memory ? "too-little-memory" : "gpu-failed",
                      .message = fmt::format("{}: {}", what, words(code)),
                      .exit_code = ExitCode::machine_lacks};
}

/// By device: its primary context, once it is opened.
std::array<std::atomic<void*>, most_devices> primary_contexts = {};

/// How many devices there are.
Result<int> open_driver() {
    const Driver& d = driver();
    if (!d.library.is_open()) return no_gpu(d.library.why_not());
    if (!d.is_whole()) return no_gpu(d.library.path() + " lacks functions of CUDA 12");
    if (const Code code = d.init(0); code != success) return no_gpu(words(code));
    int count = 0;
    if (d.device_count(&count) != success || count == 0) return no_gpu("the driver finds no device");
    return count;
}
const Result<int>& found_devices() {
    static const Result<int> count = open_driver();
    return count;
}

Result<DeviceInfo> open_device(int number) {
    const Driver& d = driver();
    const auto& count = found_devices();
    if (!count) return count.errors();
    if (number < 0 || number >= num_devices()) return no_gpu(fmt::format("device {} of {}", number, *count));
    DeviceInfo info;
    info.number = number;
    int id = 0;
    void* primary = nullptr;
    if (const Code code = d.device_get(&id, number); code != success) return no_gpu(words(code));
    char name[256] = {};
    std::size_t bytes = 0;
    int shared = 0;
    for (const Code code : {d.device_name(name, sizeof name - 1, id), d.device_memory(&bytes, id),
                            d.attribute(&info.major, capability_major, id), d.attribute(&info.minor, capability_minor, id),
                            d.attribute(&info.multiprocessors, multiprocessors_attribute, id),
                            d.attribute(&shared, shared_memory_a_block_optin, id),
                            d.driver_version(&info.driver_version), d.retain(&primary, id)})
        if (code != success) return no_gpu(words(code));
    primary_contexts[static_cast<std::size_t>(number)] = primary;
    info.name = name, info.memory_bytes = static_cast<std::int64_t>(bytes), info.block_bytes = shared;
    return info;
}

/// The thread's context; null where it has none, or where there is no driver.
void* current_context() {
    void* current = nullptr;
    const bool known = found_devices().ok() && driver().get_current(&current) == success;
    return known ? current : nullptr;
}

}  // namespace

std::string DeviceInfo::architecture() const { return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : ""); }

Result<DeviceInfo> device(int number) {
    static std::mutex opening;
    static std::map<int, Result<DeviceInfo>> opened;
    const std::lock_guard lock(opening);
    if (const auto found = opened.find(number); found != opened.end()) return found->second;
    const auto found = opened.emplace(number, open_device(number)).first;
    if (found->second && current_context() == nullptr)
        static_cast<void>(driver().set_current(primary_contexts[static_cast<std::size_t>(number)]));
    return found->second;
}

int num_devices() { return found_devices() ? std::min(*found_devices(), most_devices) : 0; }

int device_of(std::uint64_t address) {
    if (num_devices() <= 1) return 0;
    int number = 0;
    const Code code = driver().pointer_attribute(&number, ordinal_of_pointer, address);
    return code == success ? number : 0;
}

InPrimaryContext::InPrimaryContext(int device) {
    if (device < 0 || device >= most_devices) return;
    const std::atomic<void*>& primary = primary_contexts[static_cast<std::size_t>(device)];
    if (primary == nullptr && !gpu::device(device)) return;
    void* current = nullptr;
    if (driver().get_current(&current) == success && current == primary) return;
    pushed_ = driver().push_current(primary) == success;
}
InPrimaryContext::~InPrimaryContext() {
    void* popped = nullptr;
    if (pushed_) static_cast<void>(driver().pop_current(&popped));
}

KeepsContext::KeepsContext() : before_(current_context()) {}
KeepsContext::~KeepsContext() {
    if (current_context() != before_) static_cast<void>(driver().set_current(before_));
}

DeviceMemory::DeviceMemory(std::uint64_t address) : address_(address) {}
DeviceMemory::~DeviceMemory() {
    if (address_ != 0) static_cast<void>(driver().mem_free(address_));
}
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
    std::swap(address_, other.address_);
    return *this;
}
Module::~Module() { static_cast<void>(driver().module_unload(handle_)); }

Result<DeviceMemory> allocate(std::int64_t bytes) {
    std::uint64_t address = 0;
    const std::size_t wanted = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
    if (const Status done = checked(driver().mem_alloc(&address, wanted),
                                    fmt::format("allocating {} bytes on the GPU", bytes));
        !done)
        return done.errors();
    return DeviceMemory(address);
}
Result<std::uint64_t> allocate_on(Stream stream, std::int64_t bytes) {
    std::uint64_t address = 0;
    const Code code = driver().mem_alloc_async(&address, static_cast<std::size_t>(bytes), stream);
    if (const Status done = checked(code, fmt::format("allocating {} bytes on the GPU", bytes)); !done)
        return done.errors();
    return address;
}
void free_on(Stream stream, std::uint64_t address) { static_cast<void>(driver().mem_free_async(address, stream)); }
// Where there is nothing, the driver need not be asked, and takes no null pointer.
Status copy_to(const DeviceMemory& to, const void* from, std::int64_t bytes) {
    if (bytes == 0) return Done{};
    return checked(driver().to_device(to.address(), from, static_cast<std::size_t>(bytes)), "copying to the GPU");
}
Status copy_from(void* to, const DeviceMemory& from, std::int64_t bytes) {
    if (bytes == 0) return Done{};
    return checked(driver().to_host(to, from.address(), static_cast<std::size_t>(bytes)), "copying from the GPU");
}
Status fill(const DeviceMemory& memory, unsigned char value, std::int64_t bytes) {
    return checked(driver().set(memory.address(), value, static_cast<std::size_t>(bytes)), "filling memory of the GPU");
}

Result<std::shared_ptr<const Module>> load(const std::string& cubin) {
    void* handle = nullptr;
    if (const Status done = checked(driver().module_load(&handle, cubin.data()), "loading a kernel on the GPU"); !done)
        return done.errors();
    return std::make_shared<const Module>(handle);
}

Result<Function> function(const Module& module, const std::string& name, std::int64_t shared_bytes) {
    Function found = nullptr;
    if (const Status done = checked(driver().module_function(&found, module.handle(), name.c_str()), "finding kernel " + name);
        !done)
        return done.errors();
    const Code code = driver().function_attribute(found, max_dynamic_shared_size, static_cast<int>(shared_bytes));
    if (const Status done = checked(code, fmt::format("{} bytes of shared memory for kernel {}", shared_bytes, name)); !done)
        return done.errors();
    return found;
}

Result<EncodedMap> encode_map(std::uint64_t address, DType type, const std::vector<std::int64_t>& sizes,
                              const std::vector<std::int64_t>& values_apart, const cuda::TensorMap& map) {
    // CUtensorMapDataType: values are copied as they are, so that only their width counts; 0 is uint8, 1 uint16, 2
    // uint32.
    const int width = bytes(type) == 1 ? 0 : bytes(type) == 2 ? 1 : 2;
    const auto rank = static_cast<std::uint32_t>(sizes.size());
    std::vector<std::uint64_t> extents, strides;
    std::vector<std::uint32_t> boxes, steps(sizes.size(), 1);
    for (std::size_t d = sizes.size(); d-- > 0;) {
        extents.push_back(static_cast<std::uint64_t>(sizes[d]));
        boxes.push_back(static_cast<std::uint32_t>(map.box[d]));
        if (d > 0) strides.push_back(static_cast<std::uint64_t>(values_apart[d - 1] * bytes(type)));
    }
    const bool in_sectors = std::all_of(strides.begin(), strides.end(),
                                        [](std::uint64_t s) { return s % sector_bytes == 0; });
    const int promotion = in_sectors ? promote_256 : promote_128;
    // NOLINTNEXTLINE: addresses of the device are numbers here
    void* const begin = reinterpret_cast<void*>(address);
    EncodedMap out;
    Code code = success;
    if (map.windows) {
        std::vector<int> lower, upper;
        for (std::size_t d = sizes.size() - 1; d-- > 1;) {
            lower.push_back(static_cast<int>(map.windows->lower[d])),
                upper.push_back(static_cast<int>(map.windows->upper[d]));
            steps[sizes.size() - 1 - d] = static_cast<std::uint32_t>(map.windows->stride[d]);
        }
        code = driver().encode_im2col(&out, width, rank, begin, extents.data(), strides.data(), lower.data(),
                                      upper.data(), boxes.front(), boxes.back(), steps.data(), no_interleave,
                                      swizzle_128, promotion, zeros_outside);
    } else {
        code = driver().encode_tiled(&out, width, rank, begin, extents.data(), strides.data(), boxes.data(),
                                     steps.data(), no_interleave, swizzle_128, promotion, zeros_outside);
    }
    if (const Status done = checked(code, "the tensor map of an operand"); !done) return done.errors();
    return out;
}

Status launch(const Launch& l, Stream stream) {
    // The driver copies what the pointers lead to, and takes them without const.
    const Code code = driver().launch_kernel(
        l.function, static_cast<unsigned>(l.blocks), 1, 1, static_cast<unsigned>(l.threads), static_cast<unsigned>(l.rows),
        1, static_cast<unsigned>(l.shared_bytes), stream, const_cast<void**>(l.arguments.data()), nullptr);
    // Words of what was tried would be allocated.
    if (code == success) return Done{};
    return checked(code, "launching a kernel");
}

Status synchronize() { return checked(driver().wait(), "running a kernel"); }

Result<double> seconds_of(const std::function<Status()>& work) {
    struct Event {
        void* handle = nullptr;
        Code made = driver().event_create(&handle, 0);
        ~Event() {
            if (handle != nullptr) static_cast<void>(driver().event_destroy(handle));
        }
    } begin, end;
    if (const Status done = checked(begin.made != success ? begin.made : end.made, "making an event"); !done)
        return done.errors();
    if (const Status done = checked(driver().event_record(begin.handle, nullptr), "recording an event"); !done)
        return done.errors();
    if (const Status done = work(); !done) return done.errors();
    if (const Status done = checked(driver().event_record(end.handle, nullptr), "recording an event"); !done)
        return done.errors();
    if (const Status done = checked(driver().event_wait(end.handle), "running a kernel"); !done) return done.errors();
    float milliseconds = 0;
    if (const Status done = checked(driver().event_elapsed(&milliseconds, begin.handle, end.handle), "timing a kernel");
        !done)
        return done.errors();
    return static_cast<double>(milliseconds) / 1e3;
}

}  // namespace napkin::gpu
