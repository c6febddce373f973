#pragma once
// The number formats of arrays: storage types of the language.
#include <cstdint>
#include <optional>
#include <string_view>

namespace napkin {

enum class DType : std::uint8_t { f64, f32, f16, bf16, e4m3, e5m2, i32 };
inline constexpr DType all_dtypes[] = {DType::f64,  DType::f32,  DType::f16, DType::bf16,
                                       DType::e4m3, DType::e5m2, DType::i32};

std::string_view name(DType type);
std::optional<DType> dtype_from_name(std::string_view text);
int bytes(DType type);
bool is_float(DType type);

/// Unit roundoff spacing ε = 2^-p of the format (FP32 2^-23, FP16 2^-10, BF16 2^-7, E4M3 2^-3, E5M2 2^-2; f64 2^-52;
/// 0 for i32). Source: seed 002, number formats.
double epsilon(DType type);

/// The value of `x` after one rounding to `type` (to nearest, ties to even). Overflow gives infinity, and NaN in e4m3,
/// which has no infinity. i32 truncates toward zero and saturates.
double round_to(DType type, double x);

/// The type that holds both without losing range: the wider one; f16 with bf16 gives f32; i32 with a float gives the float.
DType promote(DType a, DType b);

}  // namespace napkin
