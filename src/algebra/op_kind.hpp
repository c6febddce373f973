#pragma once
// Kinds of arithmetic that machines have rates for: what a function costs is a kind of its row (scalar_function.hpp),
// and work is counted by kind.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace napkin {

enum class OpKind : std::uint8_t {
    fma,     ///< a multiplication and an addition in one
    simple,  ///< +, -, ×, min, max, comparisons, selections, conversions
    div,
    sqrt,
    exp,
    log,
    tanh,
    erf,
    sin,
    pow,
};
inline constexpr std::size_t num_op_kinds = 10;
std::string_view name(OpKind kind);

}  // namespace napkin
