#include "machine/processor.hpp"

#include <sys/utsname.h>

#include <sstream>

#include "support/files.hpp"

namespace napkin {

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
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (wide) return 64;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
    return 16;
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
    if (vector_bytes < native_vector_bytes()) return {vector_bytes == 32 ? "-march=x86-64-v3" : "-march=x86-64"};
#endif
    return {};
}

}  // namespace napkin
