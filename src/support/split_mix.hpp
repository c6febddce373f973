#pragma once
// SplitMix64 (Steele, Lea, Flood 2014): numbers that look random from the multiples of a constant.
#include <cstdint>

namespace napkin {

/// By which the state goes on.
inline constexpr std::uint64_t split_mix_step = 0x9E3779B97F4A7C15ULL;

/// One well-mixed number for each state.
constexpr std::uint64_t split_mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

}  // namespace napkin
