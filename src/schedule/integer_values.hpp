#pragma once
// Which integers of a kernel are computed as integers. A real number holds integers exactly up to 2^24 (2^53 in
// double), to which the next one rounds. Integers that are known to stay below that are computed in the lanes of the
// real vectors. Coordinates of ordinary sizes are such. All others are `whole`: their buffers hold 64-bit integers. The
// statements that compute with them are scalar code, which wraps as algebra/number.hpp says.
#include <map>
#include <optional>
#include <vector>

#include "algebra/number.hpp"
#include "schedule/scheduled.hpp"

namespace napkin {

class IntegerValues {
public:
    /// Finds the whole variables of the kernel. Pre: the kernel's steps are there.
    explicit IntegerValues(const ScheduledKernel& kernel);

    [[nodiscard]] const std::vector<bool>& variables() const { return whole_; }
    /// Whether the statement computes integers that real numbers may not hold exactly.
    bool needs_integers(const Compute& compute);
    /// Whether the statement computes integers that 32 bits may not hold, by their bounds and by the target's type.
    bool may_be_long(const Compute& compute);
    /// Whether the expression is an integer that real numbers hold exactly at every point; false where it is no
    /// integer.
    bool is_small(const Expr& e);
    /// Whether the expression is an integer within the type's range at every point. Then a cast to the type does
    /// nothing.
    bool keeps_all(DType type, const Expr& e);
    /// Whether real numbers have the quotient or the rest: a product with a power of two is exact, and its floor, too.
    /// Other divisions of integers, and all on a GPU, are those of integers.
    bool divides_in_lanes(const Binary& b);
    Kind kind(const Expr& e) { return kinds_(e); }

private:
    /// Bounds of an integer; none: not known.
    using Bounds = std::optional<Interval>;
    Bounds bounds(const Expr& e);
    Bounds bounds_of_binary(const Binary& b);
    Bounds bounds_of_statement(const Compute& compute);
    /// Whether real numbers hold the integers exactly, and none of them wraps at the width of its kind.
    [[nodiscard]] bool fits(const Bounds& b, Kind kind) const;

    const ScheduledKernel& kernel_;
    Kinds kinds_;
    std::int64_t largest_;                 ///< no larger integer rounds to it or to a smaller one
    std::vector<Bounds> variable_bounds_;  ///< of the integer variables that are not whole
    std::vector<bool> known_;              ///< a variable's bounds were found
    std::vector<bool> whole_;
    std::map<const ExprNode*, Bounds> bounds_;
};

}  // namespace napkin
