#include "support/dtype.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "support/result.hpp"

namespace napkin {
namespace {

/// A binary float format narrower than double: `mantissa` stored bits, normal numbers from 2^min_exponent to `max`.
struct Format {
    int mantissa;
    int min_exponent;
    double max;
    double overflow;  ///< what lies past `max` after rounding
};

struct Facts {
    std::string_view name;
    int bytes;
    double epsilon;
};
/// In the order of all_dtypes.
constexpr Facts all_facts[] = {{"f64", 8, 0x1p-52}, {"f32", 4, 0x1p-23}, {"f16", 2, 0x1p-10}, {"bf16", 2, 0x1p-7},
                               {"e4m3", 1, 0x1p-3}, {"e5m2", 1, 0x1p-2}, {"i32", 4, 0},       {"i64", 8, 0}};
const Facts& facts(DType type) { return all_facts[static_cast<std::size_t>(type)]; }

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr Format f16_format{10, -14, 65504.0, infinity};
constexpr Format bf16_format{7, -126, 0x1.fep127, infinity};
constexpr Format e4m3_format{3, -6, 448.0, nan};
constexpr Format e5m2_format{2, -14, 57344.0, infinity};

/// Rounds once, to nearest with ties to even. Works on the bits of the double, so it needs no library call.
double round_narrow(const Format& format, double x) {
    if (x != x) return x;
    const double magnitude = std::fabs(x);
    double rounded;
    if (magnitude < std::ldexp(1.0, format.min_exponent)) {
        // The spacing of subnormals is 2^(min_exponent - mantissa): adding a number whose unit in the last place is just that
        // makes the adder round there.
        const double magic = std::ldexp(1.0, format.min_exponent - format.mantissa + 52);
        rounded = (magnitude + magic) - magic;
    } else {
        const int dropped = 52 - format.mantissa;
        auto bits = std::bit_cast<std::uint64_t>(magnitude);
        const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
        bits += half - 1 + ((bits >> dropped) & 1);
        bits &= ~((std::uint64_t{1} << dropped) - 1);
        rounded = std::bit_cast<double>(bits);
    }
    if (rounded > format.max) rounded = format.overflow;
    return std::copysign(rounded, x);
}

/// `beyond`: 2^(bits - 1), the first number above the range; `largest`: the double nearest to the last inside of it.
double round_to_int(double x, double beyond, double largest) {
    if (x != x) return 0;
    if (x >= beyond) return largest;
    if (x <= -beyond) return -beyond;
    return std::trunc(x) + 0.0;  // + 0.0: an integer has no negative zero
}

}  // namespace

std::string_view name(DType type) { return facts(type).name; }

std::optional<DType> dtype_from_name(std::string_view text) {
    for (DType type : all_dtypes) {
        if (name(type) == text) return type;
    }
    return std::nullopt;
}

int bytes(DType type) { return facts(type).bytes; }
bool is_float(DType type) { return type != DType::i32 && type != DType::i64; }

double epsilon(DType type) { return facts(type).epsilon; }

double round_to(DType type, double x) {
    switch (type) {
        case DType::f64: return x;
        case DType::f32: return static_cast<double>(static_cast<float>(x));
        case DType::f16: return round_narrow(f16_format, x);
        case DType::bf16: return round_narrow(bf16_format, x);
        case DType::e4m3: return round_narrow(e4m3_format, x);
        case DType::e5m2: return round_narrow(e5m2_format, x);
        case DType::i32: return round_to_int(x, 0x1p31, 0x1p31 - 1);
        case DType::i64: return round_to_int(x, 0x1p63, 0x1p63);
    }
    throw InternalError("unknown number format");
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
        range.exponent_bits = 8 * bytes(type) - 1 - range.mantissa_bits;
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
    if (bytes(a) != bytes(b)) return bytes(a) > bytes(b) ? a : b;
    // f16 with bf16, e4m3 with e5m2: neither holds the other, the next wider format holds both.
    return bytes(a) == 2 ? DType::f32 : DType::f16;
}

}  // namespace napkin
