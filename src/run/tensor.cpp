#include "run/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>

#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/share_out.hpp"
#include "support/split_mix.hpp"

namespace napkin {
namespace {

/// A small float's layout: stored mantissa bits and exponent bias; without an infinity the highest exponent is one of
/// numbers.
struct SmallFloat {
    int mantissa, bias, bits;
    bool has_infinity;
};

/// 2^exponent of a normal double.
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

/// The bits of a number that the format holds exactly.
std::uint32_t pack(const SmallFloat& f, double x) {
    const std::uint32_t sign = std::signbit(x) ? 1U << (f.bits - 1) : 0U;
    const std::uint32_t top = (1U << (f.bits - 1)) - (1U << f.mantissa);  // exponent all ones
    if (x != x) return sign | (f.has_infinity ? top | (1U << (f.mantissa - 1)) : (1U << (f.bits - 1)) - 1);
    if (std::isinf(x)) return sign | top;
    const double size = std::fabs(x);
    if (size < power_of_two(1 - f.bias)) {
        return sign | static_cast<std::uint32_t>(size * power_of_two(f.bias - 1 + f.mantissa));
    }
    // Exponent and the mantissa's upper bits stand beside each other in a double too.
    const auto upper = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(size) >> (52 - f.mantissa));
    return sign | static_cast<std::uint32_t>(upper - (static_cast<std::int64_t>(1023 - f.bias) << f.mantissa));
}

double unpack(const SmallFloat& f, std::uint32_t raw) {
    const std::uint32_t magnitude = raw & ((1U << (f.bits - 1)) - 1), fraction = magnitude & ((1U << f.mantissa) - 1);
    const int exponent = static_cast<int>(magnitude >> f.mantissa), highest = (1 << (f.bits - 1 - f.mantissa)) - 1;
    double size;
    if (exponent == 0) {
        size = fraction * power_of_two(1 - f.bias - f.mantissa);
    } else if (exponent == highest && (f.has_infinity || fraction == (1U << f.mantissa) - 1)) {
        size = fraction == 0 ? HUGE_VAL : std::nan("");
    } else {
        size = (fraction + (1U << f.mantissa)) * power_of_two(exponent - f.bias - f.mantissa);
    }
    return (raw >> (f.bits - 1)) != 0 ? -size : size;
}

SmallFloat small_layout(DType type) {
    const DTypeFacts& row = facts(type);
    return {row.mantissa_bits, 1 - row.min_exponent, 8 * row.bytes, std::isinf(row.overflow)};
}

/// f(a number of as many bits as the type has, to store or to load).
template <class F>
auto with_bits(DType type, const F& f) {
    switch (bytes(type)) {
        case 1: return f(std::uint8_t{});
        case 2: return f(std::uint16_t{});
        case 4: return f(std::uint32_t{});
        default: return f(std::uint64_t{});
    }
}

/// Calls f(begin, end) over runs of [0, count), on several threads when there is much to do.
template <class F>
void in_parallel(std::int64_t count, const F& f) {
    constexpr double enough = 1 << 16;  // values for a thread
    share_out_runs(count, static_cast<double>(count), enough, f);
}

Diagnostic no_memory_for(const std::vector<std::int64_t>& sizes, std::int64_t bytes_wanted) {
    return too_little_memory(fmt::format("there is no memory for an array of {} ({:.1f} GB)", fmt::join(sizes, "×"),
                                         static_cast<double>(bytes_wanted) / 1e9));
}

}  // namespace

void encode(DType type, const Number& number, void* to) {
    const auto put = [to](auto stored) { std::memcpy(to, &stored, sizeof stored); };
    if (type == DType::f64) return put(number.as_real());
    if (is_float(type) && bytes(type) == 4) return put(static_cast<float>(round_to(type, number.as_real())));
    const std::uint64_t raw = is_float(type) ? pack(small_layout(type), round_to(type, number.as_real()))
                                             : static_cast<std::uint64_t>(number.to(type).as_whole(Kind::i64));
    with_bits(type, [&](auto stored) { put(static_cast<decltype(stored)>(raw)); });
}

Number decode_number(DType type, const void* from) {
    const auto get = [from]<class T>(T stored) {
        std::memcpy(&stored, from, sizeof stored);
        return stored;
    };
    if (type == DType::f64) return Number::real(get(double{}));
    if (is_float(type) && bytes(type) == 4) {
        const std::uint32_t used = ~((1U << unused_bits(type)) - 1);
        return Number::real(static_cast<double>(std::bit_cast<float>(get(std::uint32_t{}) & used)));
    }
    const std::uint64_t raw = with_bits(type, [&](auto stored) { return static_cast<std::uint64_t>(get(stored)); });
    if (is_float(type)) return Number::real(unpack(small_layout(type), static_cast<std::uint32_t>(raw)));
    return Number::whole(Kind::i64, static_cast<std::int64_t>(raw)).to(type);
}

Result<Tensor> Tensor::make(DType type, std::vector<std::int64_t> sizes) {
    std::int64_t count = 1;
    bool too_large = false;
    for (const std::int64_t size : sizes) {
        if (size < 0) {
            return Diagnostic{.code = "bad-sizes",
                              .message = fmt::format("an array cannot have {} values along an axis", size),
                              .expected = "sizes of at least 0"};
        }
        too_large |= size > 0 && count > limits::max_size_product / 8 / size;
        if (!too_large) count *= size;
    }
    if (contains(sizes, 0)) {
        count = 0;
    } else if (too_large) {
        return no_memory_for(sizes, limits::max_size_product);
    }

    Tensor tensor;
    tensor.data_ = allocate(count * bytes(type));
    if (!tensor.data_) return no_memory_for(sizes, count * bytes(type));
    tensor.type_ = type;
    tensor.sizes_ = std::move(sizes);
    tensor.count_ = count;
    return tensor;
}

Result<Tensor> Tensor::copy() const {
    Result<Tensor> tensor = make(type_, sizes_);
    if (tensor.ok() && count_ > 0) std::memcpy(tensor->data(), data(), static_cast<std::size_t>(size_bytes()));
    return tensor;
}

Result<Tensor> Tensor::to(DType type) const {
    if (type == type_) return copy();
    Result<Tensor> tensor = make(type, sizes_);
    if (!tensor.ok()) return tensor;
    in_parallel(count_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) tensor->set(i, number(i));
    });
    return tensor;
}

Number Tensor::number(std::int64_t i) const {
    return decode_number(type_, static_cast<const char*>(data()) + i * bytes(type_));
}
void Tensor::set(std::int64_t i, const Number& value) {
    encode(type_, value, static_cast<char*>(data()) + i * bytes(type_));
}

std::vector<double> Tensor::to_doubles() const {
    std::vector<double> values(static_cast<std::size_t>(count_));
    in_parallel(count_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] = at(i);
    });
    return values;
}

Column Tensor::to_column() const {
    if (is_float(type_)) return to_doubles();
    std::vector<std::int64_t> values(static_cast<std::size_t>(count_));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = number(static_cast<std::int64_t>(i)).as_whole(Kind::i64);
    return values;
}

double normal_number(std::uint64_t seed, std::uint64_t i) {
    // Box and Muller: a pair of uniform numbers gives a pair of normal ones, the cosine's for even i and the sine's for
    // odd.
    const std::uint64_t base = split_mix(seed + split_mix_step), pair = i / 2;
    const auto mixed = [&](std::uint64_t n) { return split_mix(base + n * split_mix_step) >> 11; };
    const auto a = static_cast<double>(mixed(2 * pair + 1) + 1) * 0x1p-53;  // in (0, 1]
    const auto b = static_cast<double>(mixed(2 * pair + 2)) * 0x1p-53;
    const double radius = std::sqrt(-2.0 * std::log(a)), angle = 2.0 * std::numbers::pi * b;
    return radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

void Tensor::fill_normal(std::uint64_t seed, double mean, double deviation) {
    in_parallel(count_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            set(i, mean + deviation * normal_number(seed, static_cast<std::uint64_t>(i)));
    });
}

}  // namespace napkin
