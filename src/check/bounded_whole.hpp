#pragma once
// An integer with what the rounding of real numbers may make of it: the same arithmetic as algebra/number.hpp, on
// intervals. Exact operands give an exact result, at any size and also where it wraps; an interval that only partly
// wraps may be any integer of its kind.
#include <cstdint>

#include "algebra/number.hpp"
#include "algebra/reduce.hpp"
#include "check/bounded.hpp"

namespace napkin {

/// What runs has an integer from low to high where the definition has `value`.
struct BoundedWhole {
    std::int64_t value = 0, low = 0, high = 0;

    static BoundedWhole exactly(std::int64_t value) { return {value, value, value}; }
    [[nodiscard]] bool is_exact() const { return low == high; }
    friend bool operator==(const BoundedWhole&, const BoundedWhole&) = default;
};

/// Any integer of the kind or of the type.
BoundedWhole any_whole(Kind kind, std::int64_t value);
BoundedWhole any_whole(DType type, std::int64_t value);

/// In another kind or type, where it wraps; in that of truths, whether it is not 0.
BoundedWhole wrapped(Kind kind, const BoundedWhole& a);
BoundedWhole wrapped(DType type, const BoundedWhole& a);
/// A real number that is cast: truncated toward zero into the range of the type, once.
BoundedWhole truncated(DType type, const Bounded& a);
/// Whether a number is not 0, as 0 or 1, or either.
BoundedWhole whole_truth(const Bounded& a);
/// How far what runs may be from the value, which stands in `value` only as the nearest double; unbounded where it may
/// be any of its type.
Bounded distance_of(DType type, const BoundedWhole& a);
/// As a real number of the arithmetic that runs, which rounds a large one.
Bounded as_real(Kind kind, const BoundedWhole& a, const Rounding& rounding);

// Operators whose result is an integer; the operands are integers of the kind. Comparisons give 0 or 1.
BoundedWhole apply_integer(UnaryOp op, Kind kind, const BoundedWhole& a);
BoundedWhole apply_integer(BinaryOp op, Kind kind, const BoundedWhole& a, const BoundedWhole& b);
/// Both sides where the condition may go either way.
BoundedWhole select_whole(const BoundedWhole& condition, const BoundedWhole& a, const BoundedWhole& b);

}  // namespace napkin
