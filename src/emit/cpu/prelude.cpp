#include "emit/cpu/prelude.hpp"

namespace napkin::cpu {

std::string_view prelude_text() {
    // Each file is a string literal. Their order matters, which the empty lines keep clang-format from changing.
    static constexpr std::string_view text =
#include "emit/cpu/prelude_vectors.inc"

#include "emit/cpu/prelude_math.inc"

#include "emit/cpu/prelude_types.inc"
        ;
    return text;
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

int native_vector_registers() {
#if defined(__x86_64__)
    return native_vector_bytes() == 64 ? 32 : 16;
#else
    return 32;
#endif
}

}  // namespace napkin::cpu
