#pragma once
// Which kinds of values an expression can have, by its form alone. Laws that cancel, divide out or drop a value are
// exact where the value is finite and, under a division, not zero. Inputs count as finite, and nothing finite overflows
// or underflows. Whether it does is a question of sizes, which the analysis of rounding answers.
#include <cstdint>
#include <functional>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"

namespace napkin {

/// A set of kinds of values, as bits.
class ValueClass {
public:
    enum Kind : std::uint8_t {
        negative = 1,
        zero = 2,
        positive = 4,
        infinite = 8,
        minus_infinite = 16,
        undefined = 32
    };

    constexpr ValueClass() = default;
    constexpr explicit ValueClass(unsigned bits) : bits_(static_cast<std::uint8_t>(bits)) {}
    static constexpr ValueClass finite() { return ValueClass(negative | zero | positive); }
    static constexpr ValueClass any() { return ValueClass(63); }

    [[nodiscard]] constexpr bool has(Kind kind) const { return (bits_ & kind) != 0; }
    [[nodiscard]] constexpr bool is_finite() const { return (bits_ & ~7U) == 0; }
    [[nodiscard]] constexpr unsigned bits() const { return bits_; }
    constexpr ValueClass& operator|=(ValueClass other) {
        bits_ |= other.bits_;
        return *this;
    }
    friend constexpr ValueClass operator|(ValueClass a, ValueClass b) { return a |= b; }
    friend constexpr bool operator==(ValueClass, ValueClass) = default;

private:
    std::uint8_t bits_ = 0;
};

/// The class of a number.
ValueClass value_class(double value);
/// The class of an expression, given those of the arrays that it reads.
ValueClass value_class(const Expr& e, const std::function<ValueClass(ArrayId)>& of_array);
/// The class of a reduction of at least one such value.
ValueClass reduced(ReduceOp op, ValueClass terms);

}  // namespace napkin
