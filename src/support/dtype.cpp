#include "support/dtype.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "support/result.hpp"

namespace napkin {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr DTypeFacts integers(std::string_view type_name, std::string_view memory_text) {
    constexpr bool is_signed = std::numeric_limits<T>::is_signed;
    return {.name = type_name,
            .kind = DTypeKind::integer,
            .bytes = sizeof(T),
            .least = std::numeric_limits<T>::min(),
            .most = std::numeric_limits<T>::max(),
            .memory_text = memory_text,
            .npy_kind = is_signed ? 'i' : 'u',
            .dlpack_code = is_signed ? std::uint8_t{0} : std::uint8_t{1}};
}
constexpr DTypeFacts reals(std::string_view type_name, int bytes, int mantissa_bits, int min_exponent, double largest,
                           double overflow, std::string_view memory_text, char npy_kind, std::uint8_t dlpack_code,
                           int cuda_data_type) {
    return {.name = type_name,
            .bytes = bytes,
            .mantissa_bits = mantissa_bits,
            .min_exponent = min_exponent,
            .largest = largest,
            .overflow = overflow,
            .epsilon = 1.0 / static_cast<double>(std::uint64_t{1} << mantissa_bits),
            .memory_text = memory_text,
            .npy_kind = npy_kind,
            .dlpack_code = dlpack_code,
            .cuda_data_type = cuda_data_type};
}
/// In the order of all_dtypes.
constexpr DTypeFacts all_facts[] = {
    reals("f64", 8, 52, -1022, std::numeric_limits<double>::max(), infinity, "double", 'f', 2, 1),
    reals("f32", 4, 23, -126, std::numeric_limits<float>::max(), infinity, "float", 'f', 2, 0),
    reals("f16", 2, 10, -14, 65504.0, infinity, "f16", 'f', 2, 2),
    reals("bf16", 2, 7, -126, 0x1.fep127, infinity, "bf16", 'V', 4, 14),
    reals("e4m3", 1, 3, -6, 448.0, nan, "e4m3", 'V', 10, 28),
    reals("e5m2", 1, 2, -14, 57344.0, infinity, "e5m2", 'V', 12, 29),
    integers<std::int32_t>("i32", "int32_t"),
    integers<std::int64_t>("i64", "int64_t"),
    integers<std::int8_t>("i8", "int8_t"),
    integers<std::uint8_t>("u8", "uint8_t"),
    integers<std::int16_t>("i16", "int16_t"),
    {.name = "bool",
     .kind = DTypeKind::truth,
     .bytes = 1,
     .least = 0,
     .most = 1,
     .memory_text = "uint8_t",
     .npy_kind = 'b',
     .dlpack_code = 6},
    // In memory an f32, of which the lowest bits are not read (PTX ISA, alternate floating point data formats).
    reals("tf32", 4, 10, -126, 0x1.ffcp127, infinity, "tf32", 'f', 2, 0),
};
static_assert(std::size(all_facts) == std::size(all_dtypes));

/// Rounds once, to nearest with ties to even. Works on the bits of the double, so it needs no library call.
double round_narrow(const DTypeFacts& format, double x) {
    if (x != x) return x;
    const double magnitude = std::fabs(x);
    double rounded;
    if (magnitude < std::ldexp(1.0, format.min_exponent)) {
        // The spacing of subnormals is 2^(min_exponent - mantissa): adding a number whose unit in the last place is
        // just that makes the adder round there.
        const double magic = std::ldexp(1.0, format.min_exponent - format.mantissa_bits + 52);
        rounded = (magnitude + magic) - magic;
    } else {
        const int dropped = 52 - format.mantissa_bits;
        auto bits = std::bit_cast<std::uint64_t>(magnitude);
        const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
        bits += half - 1 + ((bits >> dropped) & 1);
        bits &= ~((std::uint64_t{1} << dropped) - 1);
        rounded = std::bit_cast<double>(bits);
    }
    if (rounded > format.largest) rounded = format.overflow;
    return std::copysign(rounded, x);
}

}  // namespace

const DTypeFacts& facts(DType type) { return all_facts[static_cast<std::size_t>(type)]; }

std::string_view name(DType type) { return facts(type).name; }

std::optional<DType> dtype_from_name(std::string_view text) {
    for (DType type : all_dtypes) {
        if (name(type) == text) return type;
    }
    return std::nullopt;
}

int bytes(DType type) { return facts(type).bytes; }
bool is_float(DType type) { return facts(type).kind == DTypeKind::real; }
bool is_narrow_integer(DType type) { return !is_float(type) && bytes(type) < bytes(DType::i32); }

int unused_bits(DType type) {
    const DTypeFacts& row = facts(type);
    constexpr int mantissa_of_f32 = 23;
    return row.kind == DTypeKind::real && row.bytes == 4 ? mantissa_of_f32 - row.mantissa_bits : 0;
}

double epsilon(DType type) { return facts(type).epsilon; }

double round_to(DType type, double x) {
    const DTypeFacts& row = facts(type);
    if (row.kind == DTypeKind::truth) return x != 0 ? 1 : 0;
    if (row.kind == DTypeKind::integer) {
        if (x != x) return 0;
        // + 0.0: an integer has no negative zero.
        return std::clamp(std::trunc(x), static_cast<double>(row.least), static_cast<double>(row.most)) + 0.0;
    }
    if (type == DType::f64) return x;
    return type == DType::f32 ? static_cast<double>(static_cast<float>(x)) : round_narrow(row, x);
}

namespace {

bool holds(DType type, double x) { return std::isfinite(x) && round_to(type, x) == x; }

/// 2^exponent·(1 + epsilon), where a double is fine enough for it.
bool spaced(DType type, int exponent, double epsilon) {
    const double next = std::ldexp(1 + epsilon, exponent);
    return std::ldexp(next, -exponent) == 1 + epsilon && holds(type, next);
}

/// By trying which numbers the type holds.
FormatRange measured_range(DType type) {
    constexpr int most = 1100;  // past the exponents of a double
    FormatRange range;
    range.epsilon = 1;
    while (1 + range.epsilon / 2 > 1 && holds(type, 1 + range.epsilon / 2)) range.epsilon /= 2;
    range.values_a_binade = 1 / range.epsilon;
    int low = 0, normal = 0, high = 0;
    while (low > -most && std::ldexp(1.0, low - 1) > 0 && holds(type, std::ldexp(1.0, low - 1))) --low;
    while (normal > low && spaced(type, normal - 1, range.epsilon)) --normal;
    while (high < most && holds(type, std::ldexp(1.0, high + 1))) ++high;
    range.smallest_subnormal = std::ldexp(1.0, low);
    range.smallest_normal = std::ldexp(1.0, normal);
    range.largest = std::ldexp(1.0, high);
    for (double part = range.largest / 2; part >= range.smallest_subnormal; part /= 2)
        if (holds(type, range.largest + part)) range.largest += part;
    range.decades_up = std::log10(range.largest);
    range.decades_down = std::log10(range.smallest_normal);
    if (is_float(type)) {
        range.mantissa_bits = -std::ilogb(range.epsilon);
        range.exponent_bits = std::bit_width(static_cast<unsigned>(high - normal + 1));
        range.bias = 1 - normal;
    }
    return range;
}

}  // namespace

FormatRange format_range(DType type) {
    // Each type is measured once: the verdict asks for every value.
    static const auto ranges = [] {
        std::array<FormatRange, std::size(all_dtypes)> all;
        for (const DType t : all_dtypes) all[static_cast<std::size_t>(t)] = measured_range(t);
        return all;
    }();
    return ranges[static_cast<std::size_t>(type)];
}

DType promote(DType a, DType b) {
    if (a == b) return a;
    if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
    if (facts(a).kind != facts(b).kind) return facts(a).kind == DTypeKind::truth ? b : a;
    if (is_float(a) && bytes(a) == bytes(b) && bytes(a) == 4) return DType::f32;  // f32 with tf32
    if (bytes(a) != bytes(b)) return bytes(a) > bytes(b) ? a : b;
    if (!is_float(a)) return DType::i16;  // i8 with u8
    // f16 with bf16, e4m3 with e5m2: neither holds the other, the next wider format holds both.
    return bytes(a) == 2 ? DType::f32 : DType::f16;
}

}  // namespace napkin
