#pragma once
// Swizzles: permutations of places by exclusive or, after a layout (CuTe's Swizzle<bits, base, shift>; seed 001, §3.2
// and footnote 16).
#include "algebra/layout.hpp"

namespace napkin::layouts {

/// x ^ (the `bits` bits of x from base + shift up, moved down to base). It permutes every aligned run of 2^(base +
/// shift + bits) numbers, is its own inverse, and keeps runs of 2^base. Pre: 0 ≤ bits ≤ shift.
struct Swizzle {
    int bits = 0, base = 0, shift = 0;

    [[nodiscard]] std::int64_t operator()(std::int64_t x) const {
        const std::int64_t mask = ((std::int64_t{1} << bits) - 1) << base;
        return x ^ ((x >> shift) & mask);
    }
    friend bool operator==(const Swizzle&, const Swizzle&) = default;
};

/// A layout and what is done with its values.
struct Swizzled {
    Swizzle swizzle;
    Layout layout;

    [[nodiscard]] std::int64_t operator()(std::int64_t index) const { return swizzle(layout(index)); }
    [[nodiscard]] std::int64_t operator()(const Coordinate& at) const { return swizzle(layout(at)); }
    friend bool operator==(const Swizzled&, const Swizzled&) = default;
};

/// "Sw<3,4,3> o (8,64):(64,1)"; the layout alone where nothing is swizzled.
std::string to_string(const Swizzled& swizzled);
Result<Swizzled> parse_swizzled(std::string_view text);

/// What comes before a layout leaves the swizzle after it in place.
Result<Swizzled> composition(const Swizzled& outer, const Layout& inner);

/// The same permutation of elements of so many bytes, where the swizzle is one of bytes. Pre: a power of two, at most
/// 2^base.
Swizzle of_elements(const Swizzle& of_bytes, std::int64_t element_bytes);

}  // namespace napkin::layouts
