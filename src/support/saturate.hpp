#pragma once
// Arithmetic on counts. What adds and multiplies stops at 2^62 instead of overflowing: such counts are far past
// anything that can be run.
#include <cstdint>

#include "support/limits.hpp"

namespace napkin {

inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) || sum > limits::max_size_product ? limits::max_size_product : sum;
}

inline std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) || product > limits::max_size_product ? limits::max_size_product : product;
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }  ///< b > 0
/// The least multiple of `unit` that is at least n. Pre: n ≥ 0, unit > 0.
inline std::int64_t round_up(std::int64_t n, std::int64_t unit) { return ceil_div(n, unit) * unit; }

}  // namespace napkin
