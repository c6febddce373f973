#pragma once
// What the C++20 library of emscripten in Debian 12 (libc++ 13) does not have yet; included before everything else.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace std {

#if _LIBCPP_VERSION < 14000
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
    return __builtin_bit_cast(To, from);
}
#endif

/// Reads the longest number that is there, as the C library does: no locale but C's is ever set.
inline from_chars_result from_chars(const char* first, const char* last, double& value, int = 0) {
    const string text(first, last);
    if (text.empty() || text[0] == ' ' || text[0] == '+') return {first, errc::invalid_argument};
    char* end = nullptr;
    const double read = strtod(text.c_str(), &end);
    if (end == text.c_str()) return {first, errc::invalid_argument};
    if (read == HUGE_VAL || read == -HUGE_VAL) return {first + (end - text.c_str()), errc::result_out_of_range};
    value = read;
    return {first + (end - text.c_str()), errc{}};
}

}  // namespace std
