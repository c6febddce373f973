#pragma once
// The number formats of arrays: storage types of the language.
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace napkin {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

enum class DType : std::uint8_t { f64, f32, f16, bf16, e4m3, e5m2, i32, i64 };
inline constexpr DType all_dtypes[] = {DType::f64,  DType::f32,  DType::f16, DType::bf16,
                                       DType::e4m3, DType::e5m2, DType::i32, DType::i64};

std::string_view name(DType type);
std::optional<DType> dtype_from_name(std::string_view text);
int bytes(DType type);
bool is_float(DType type);

/// Unit roundoff spacing ε = 2^-p of the format (FP32 2^-23, FP16 2^-10, BF16 2^-7, E4M3 2^-3, E5M2 2^-2; f64 2^-52;
/// 0 for integers). Source: seed 002, number formats.
double epsilon(DType type);

/// The value of `x` after one rounding to `type` (to nearest, ties to even). Overflow gives infinity, and NaN in e4m3,
/// which has no infinity. Integers truncate toward zero and
/// saturate, NaN gives 0; of i64 the result is the nearest double (whole_of in algebra/number.hpp is exact).
double round_to(DType type, double x);

/// What a format can hold, found by asking round_to alone. Of its bits one is the sign's, the exponent's and the mantissa's are what
/// the range and the spacing say.
struct FormatRange {
    double epsilon = 0;             ///< from 1 to the next value above
    double values_a_binade = 0;     ///< from 1, below 2
    double largest = 0;             ///< finite
    double smallest_normal = 0;     ///< from here up the spacing is epsilon times the power of two below
    double smallest_subnormal = 0;  ///< the least above 0
    double decades_up = 0;          ///< log10 of the largest
    double decades_down = 0;        ///< log10 of the smallest normal
    int mantissa_bits = 0, exponent_bits = 0, bias = 0;  ///< 0 for integers, which have none
};
FormatRange format_range(DType type);

/// The type that holds both without losing range: the wider one; f16 with bf16 gives f32; an integer with a float gives the float.
DType promote(DType a, DType b);

}  // namespace napkin
