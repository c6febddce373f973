/* A stand-in for NVIDIA's driver and for NVRTC: two H200 that run nothing, and write down what they are asked for. As the driver does, it refuses
 * what needs a context where the thread has none, and counts what a stream that is being captured does not take. */
#include "fake_cuda.h"

#include <stdlib.h>
#include <string.h>

typedef int Code;
enum { success = 0, invalid_value = 1, no_context = 201, invalid_handle = 400, launch_failed = 719 };

static fake_state state;
static int primary[fake_devices], code_on[fake_devices]; /* only their addresses count */
static _Thread_local void* stack[8];
static _Thread_local int depth;

fake_state* fake_cuda_state(void) { return &state; }

static void* current(void) { return depth > 0 ? stack[depth - 1] : NULL; }
/* In a context; `captured`: a capture takes it. */
static Code enter(int captured) {
    if (!captured && state.capturing) ++state.broken;
    return current() == &primary[0] || current() == &primary[1] ? success : no_context;
}
static int current_device(void) { return current() == &primary[1]; }

Code cuInit(unsigned flags) { return flags == 0 ? success : invalid_value; }
Code cuGetErrorString(Code code, const char** text) {
    *text = code == launch_failed ? "unspecified launch failure"
            : code == no_context  ? "invalid device context"
                                  : "an error";
    return success;
}
Code cuDriverGetVersion(int* version) { return *version = 13000, success; }
Code cuDeviceGetCount(int* count) { return *count = fake_devices, success; }
Code cuDeviceGet(int* device, int index) { return *device = index, success; }
Code cuDeviceGetName(char* name, int length, int device) {
    (void)device;
    return strncpy(name, "NVIDIA H200", (size_t)length), success;
}
Code cuDeviceTotalMem_v2(size_t* bytes, int device) { return (void)device, *bytes = (size_t)141 << 30, success; }
Code cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : attribute == 97 ? 232448 : 0;
    return success;
}
Code cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &primary[device], success; }
Code cuCtxGetCurrent(void** context) { return *context = current(), success; }
Code cuCtxSetCurrent(void* context) {
    if (depth == 0) depth = 1;
    return stack[depth - 1] = context, success;
}
Code cuCtxPushCurrent_v2(void* context) { return stack[depth++] = context, success; }
Code cuCtxPopCurrent_v2(void** context) {
    if (depth == 0) return no_context;
    return *context = stack[--depth], success;
}
Code cuCtxSynchronize(void) { return ++state.waits, enter(0); }

Code cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    ++state.allocations;
    *address = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return enter(0);
}
Code cuMemFree_v2(uint64_t address) {
    ++state.frees;
    free((void*)(uintptr_t)address);
    return enter(0);
}
Code cuMemAllocAsync(uint64_t* address, size_t bytes, void* stream) {
    (void)stream, ++state.stream_allocations;
    *address = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return enter(1);
}
Code cuMemFreeAsync(uint64_t address, void* stream) {
    (void)stream, ++state.stream_frees;
    free((void*)(uintptr_t)address);
    return enter(1);
}
/* The ordinal of the device: memory past the test's boundary is the second one's. */
Code cuPointerGetAttribute(void* value, int attribute, uint64_t address) {
    if (attribute != 9) return invalid_value;
    return *(int*)value = state.second_device_from != 0 && address >= state.second_device_from, success;
}
Code cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
    return memcpy((void*)(uintptr_t)to, from, bytes), ++state.waits, enter(0);
}
Code cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
    return memcpy(to, (const void*)(uintptr_t)from, bytes), ++state.waits, enter(0);
}
Code cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes) {
    return memset((void*)(uintptr_t)address, value, bytes), ++state.fills, enter(0);
}
Code cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void* stream) {
    (void)stream;
    return memset((void*)(uintptr_t)address, value, bytes), enter(1);
}
Code cuModuleLoadData(void** module, const void* code) {
    (void)code;
    return ++state.loads, *module = &code_on[current_device()], enter(0);
}
Code cuModuleUnload(void* module) { return (void)module, ++state.unloads, enter(0); }
Code cuModuleGetFunction(void** function, void* module, const char* name) {
    return (void)name, *function = module, enter(0);
}
Code cuFuncSetAttribute(void* function, int attribute, int value) {
    return (void)function, (void)attribute, (void)value, enter(0);
}
Code cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address, const uint64_t* sizes,
                            const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                            int swizzle, int promotion, int fill) {
    (void)type, (void)rank, (void)sizes, (void)strides, (void)box, (void)steps;
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    memset(map, 0, 128);
    ++state.encodings, state.encoded = (uint64_t)(uintptr_t)address;
    return (uintptr_t)address % 16 == 0 ? success : invalid_value;
}
Code cuTensorMapEncodeIm2col(void* map, int type, uint32_t rank, void* address, const uint64_t* sizes,
                             const uint64_t* strides, const int* lower, const int* upper, uint32_t channels,
                             uint32_t pixels, const uint32_t* steps, int interleave, int swizzle, int promotion, int fill) {
    (void)lower, (void)upper, (void)channels, (void)pixels;
    return cuTensorMapEncodeTiled(map, type, rank, address, sizes, strides, NULL, steps, interleave, swizzle, promotion,
                                  fill);
}
Code cuLaunchKernel(void* function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned rows,
                    unsigned depth_of_block, unsigned shared_bytes, void* stream, void** parameters, void** extra) {
    (void)y, (void)z, (void)depth_of_block, (void)extra;
    const Code entered = enter(1);
    if (entered != success) return entered;
    if (function != &code_on[current_device()]) return invalid_handle; /* of another device */
    if (state.fails) return launch_failed;
    ++state.launches;
    memmove(state.launch + 1, state.launch, (fake_most_launches - 1) * sizeof *state.launch);
    fake_launch* const launch = state.launch;
    launch->device = current_device();
    launch->stream = stream, launch->blocks = blocks, launch->threads = threads * rows, launch->shared_bytes = shared_bytes;
    memcpy(launch->pointers, parameters[0], sizeof launch->pointers);
    memcpy(&launch->scratch, parameters[1], sizeof launch->scratch);
    return success;
}
Code cuEventCreate(void** event, unsigned flags) { return (void)flags, *event = &state, success; }
Code cuEventDestroy_v2(void* event) { return (void)event, success; }
Code cuEventRecord(void* event, void* stream) { return (void)event, (void)stream, success; }
Code cuEventSynchronize(void* event) { return (void)event, ++state.waits, enter(0); }
Code cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
    return (void)begin, (void)end, *milliseconds = 1, success;
}

/* NVRTC: a cubin that nobody reads, and an assembler that has nothing to say. */
Code nvrtcVersion(int* major, int* minor) { return *major = 0, *minor = 1, success; }
Code nvrtcCreateProgram(void** program, const char* source, const char* name, int headers, const char* const* texts,
                        const char* const* names) {
    (void)source, (void)name, (void)headers, (void)texts, (void)names;
    return *program = &state, success;
}
Code nvrtcDestroyProgram(void** program) { return *program = NULL, success; }
Code nvrtcCompileProgram(void* program, int count, const char* const* options) {
    return (void)program, (void)count, (void)options, ++state.compilations, success;
}
Code nvrtcGetProgramLogSize(void* program, size_t* size) { return (void)program, *size = 0, success; }
Code nvrtcGetProgramLog(void* program, char* log) { return (void)program, (void)log, success; }
Code nvrtcGetCUBINSize(void* program, size_t* size) { return (void)program, *size = 6, success; }
Code nvrtcGetCUBIN(void* program, char* cubin) { return (void)program, memcpy(cubin, "cubin", 6), success; }
