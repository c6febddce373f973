#pragma once
// A number with its rounding bound. The rules follow from the definition alone. An operation on numbers within their
// bounds gives a number within its bound, wherever the executed arithmetic rounds.
//
// The error of a result is the error of its operands carried through the operation, plus its own rounding. It is
// carried by the operation's slope or by its values at the ends of the interval. What leaves the finite numbers is no
// error but a state: `may` names the special values that stand beside the interval.
#include <cstdint>

#include "algebra/expr.hpp"
#include "support/dtype.hpp"

namespace napkin {

/// The special values that a number may have taken, as bits.
enum Special : std::uint8_t { may_be_infinite = 1, may_be_minus_infinite = 2, may_be_nan = 4, may_be_any = 7 };

/// What runs has a number within value ± error here, or one of the special values in `may`. An infinite or NaN value
/// has error 0: it is what every evaluation gives, but for `may`. An infinite error with may_be_any: nothing is known.
struct Bounded {
    double value = 0;
    double error = 0;
    std::uint8_t may = 0;
    friend bool operator==(const Bounded&, const Bounded&) = default;
};

Bounded anything(double value);
inline bool is_unbounded(const Bounded& x) { return !(x.error < 1.7976931348623157e308); }

/// The arithmetic that runs, and that of the reference's own double precision on top.
struct Rounding {
    DType type = DType::f32;  ///< that what runs computes in
    double unit = 0;          ///< largest relative error of one rounding in a sum, u
    /// of one operation: 2u, as what runs may apply it in two steps (a division as a product with a reciprocal)
    double step = 0;
    /// normal number: absolute error of a result or an input below it, as kernels flush such numbers to 0
    double smallest = 0;
    double largest = 0;  ///< finite; what passes it may have overflowed
    double whole = 0;    ///< whole numbers up to here are held exactly
};
Rounding rounding_of(DType working);

/// What the result v of a sum of any kind, within an error, may lose as it is flushed: nothing where it is exactly 0 or
/// surely normal.
inline double flushed(double v, double error, const Rounding& rounding) {
    return v != 0 && (v < 0 ? -v : v) - error < rounding.smallest ? rounding.smallest : 0;
}

/// An exponential whose logarithm is below this is 0 in what runs, or smaller than it is in the reals. This is far
/// enough below the smallest number that no rounding brings it back. So a mask of -1e30 gives a weight of nothing, even
/// times 1e30.
double log_of_nothing(const Rounding& rounding);
/// How far such an exponential, of at most this logarithm, is from what runs.
double nothing(double log_size);

/// The result of an operation. `whole`: operands and result are whole numbers by their form, so that nothing is rounded
/// while they are small enough.
Bounded apply(UnaryOp op, const Bounded& a, const Rounding& rounding);
Bounded apply(BinaryOp op, const Bounded& a, const Bounded& b, const Rounding& rounding, bool whole = false);
/// Both sides where the condition may go either way.
Bounded select(const Bounded& condition, const Bounded& a, const Bounded& b);
/// The value as the float type holds it. Rounding is part of the definition here, so the interval is that of the
/// rounded values. One more rounding is added, since a cast may be exchanged with a factor.
Bounded cast(DType type, const Bounded& a);
/// The value whether or not it was rounded to the type on its way: what runs may keep it or read it back from memory.
Bounded stored(DType type, const Bounded& a);

/// Whether a conversion to the type may give 0 in place of value ± error: kernels flush what is below the normal range
/// of the types in which they compute. A type whose range ends earlier, as f16's, keeps its subnormal numbers.
bool may_be_flushed(DType type, double value, double error);

/// Widens the bound so that it holds `other` too.
void admit(Bounded& x, double other);

/// What `may` becomes when an interval reaches past the largest finite number.
std::uint8_t overflow(double value, double error, const Rounding& rounding);

}  // namespace napkin
