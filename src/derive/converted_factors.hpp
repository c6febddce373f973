#pragma once
// Factors of products that each kernel converts for itself, where an instruction multiplies two of one type. For
// S[q, x] = sum(k) Q[q, k] * K[x, k] with Q in bf16 and K in e4m3, the kernel computes
//   K_bf16[x, k] = K[x, k]
// in each of its chunks. What it computes anyway, such as weights times their scales, takes the type itself.
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

struct FactorConversion {
    ArrayId array;  ///< in memory, or a map that a kernel computes
    DType type = DType::f32;
    friend bool operator==(const FactorConversion&, const FactorConversion&) = default;
};

/// Sums of products multiply the converted factors. Arrays that the form had before keep their numbers.
Derived with_conversions(const Derived& derived, const std::vector<FactorConversion>& conversions);

}  // namespace napkin
