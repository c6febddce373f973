#include "machine/processor.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "support/files.hpp"

namespace napkin {

namespace {

int processors_own_vector_bytes() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (wide) return 64;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
    return 16;
}

}  // namespace

std::string processor_identity() {
    utsname system{};
    ::uname(&system);
    std::string identity = system.machine;
    // The lines of the first processor that decide what -march=native means.
    std::istringstream lines(read_file("/proc/cpuinfo").value_or(""));
    std::string line;
    while (std::getline(lines, line) && !line.empty()) {
        for (const char* key : {"vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer",
                                "CPU architecture", "CPU variant", "CPU part", "Features", "isa"}) {
            if (line.starts_with(key)) identity += "\n" + line;
        }
    }
    return identity;
}

int native_vector_bytes() {
    const char* const most = std::getenv("NAPKIN_VECTOR_BYTES");
    const int bytes = most == nullptr ? 0 : std::atoi(most);
    if (bytes <= 0) return processors_own_vector_bytes();
    return std::min(bytes < 32 ? 16 : bytes < 64 ? 32 : 64, processors_own_vector_bytes());
}

int vector_registers([[maybe_unused]] int vector_bytes) {
#if defined(__x86_64__)
    return vector_bytes == 64 ? 32 : 16;
#else
    return 32;
#endif
}

std::vector<std::string> flags_for_vectors([[maybe_unused]] int vector_bytes) {
#if defined(__x86_64__)
    const int bytes = std::min(vector_bytes, native_vector_bytes());
    if (bytes < processors_own_vector_bytes()) return {bytes == 32 ? "-march=x86-64-v3" : "-march=x86-64"};
#endif
    return {};
}

}  // namespace napkin
