#pragma once
// The number formats of arrays: storage types of the language. What a type is stands in one table, a row for each: who
// needs to know something of a type reads it there.
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace napkin {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

enum class DType : std::uint8_t { f64, f32, f16, bf16, e4m3, e5m2, i32, i64, i8, u8, i16, boolean, tf32 };
inline constexpr DType all_dtypes[] = {DType::f64,  DType::f32,     DType::f16, DType::bf16, DType::e4m3,
                                       DType::e5m2, DType::i32,     DType::i64, DType::i8,   DType::u8,
                                       DType::i16,  DType::boolean, DType::tf32};

enum class DTypeKind : std::uint8_t {
    real,
    integer,
    truth,  ///< 0 or 1
};

/// A type's row.
struct DTypeFacts {
    std::string_view name;  ///< in the language
    DTypeKind kind = DTypeKind::real;
    int bytes = 0;
    /// For real numbers: stored bits of the mantissa and the exponent of the smallest normal number. Then the largest
    /// finite number, what lies past it after rounding, and the spacing from 1 on.
    int mantissa_bits = 0, min_exponent = 0;
    double largest = 0, overflow = 0, epsilon = 0;
    std::int64_t least = 0, most = 0;  ///< the range of integers
    std::string_view memory_text;      ///< the type of a value in memory, in emitted C++ and CUDA
    char npy_kind = 'f';           ///< the letter of NumPy's array protocol; 'V': raw bytes, where NumPy has no name
    std::uint8_t dlpack_code = 0;  ///< DLDataTypeCode of DLPack 1.1
    int cuda_data_type = -1;       ///< cudaDataType, in which CUDA's libraries multiply; -1: in none
};
const DTypeFacts& facts(DType type);

std::string_view name(DType type);
std::optional<DType> dtype_from_name(std::string_view text);
int bytes(DType type);
bool is_float(DType type);
/// Whether it holds integers of fewer bits than arithmetic is done in: they are computed as i32.
bool is_narrow_integer(DType type);

/// Bits of a value in memory that its type does not use: the lowest ones of a tf32, which is an f32 without them.
int unused_bits(DType type);

/// Unit roundoff spacing ε = 2^-p of the format (FP32 2^-23, FP16 2^-10, BF16 2^-7, E4M3 2^-3, E5M2 2^-2; f64 2^-52;
/// 0 for integers). Source: seed 002, number formats.
double epsilon(DType type);

/// The value of `x` after one rounding to `type` (to nearest, ties to even). Overflow gives infinity, and NaN in e4m3,
/// which has no infinity. Integers truncate toward zero and saturate, and NaN gives 0. For i64 the result is the
/// nearest double (whole_of in algebra/number.hpp is exact). A truth is 1 where the number is not 0, also for NaN.
double round_to(DType type, double x);

/// What a format can hold, found by asking round_to alone. One of its bits is the sign. The bits of the exponent and
/// the mantissa follow from the range and the spacing.
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

/// The type that holds both without losing range: the wider one. However, f16 with bf16 gives f32, and u8 with i8 gives
/// i16. An integer with a float gives the float, a truth with a number the number.
DType promote(DType a, DType b);

}  // namespace napkin
