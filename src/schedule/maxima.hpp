#pragma once
// Which of a kernel's values are extrema over others, so that an exponential of the difference is at most 1.
#include <optional>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// How an extremum bounds its values.
enum class Bounding : std::uint8_t {
    exactly,  ///< none of them is beyond it; 0 stands in for it only where all of them are infinite
    nearly,   ///< 0 may stand in for it wherever it is infinite, as the result is infinite anyway
};

class Maxima {
public:
    explicit Maxima(const ScheduledKernel& kernel) : kernel_(kernel) {}

    /// The one step that computes the variable; none where none or several do.
    [[nodiscard]] std::optional<StepId> definition(VariableId id) const;

    /// Whether the exponent is at most 0, as step `reader` finds it. It is a value less a maximum over such values, a
    /// minimum less one of its values, or a positive number times that.
    [[nodiscard]] bool is_at_most_zero(const Expr& exponent, StepId reader, Bounding how) const;

private:
    /// Whether `m` is an extremum over values, `value` among them, or 0 where that extremum is infinite. Both are as
    /// step `reader` finds them. What is read has to be computed before it is read. An extremum that is updated later
    /// may lie on the other side of the value.
    [[nodiscard]] bool dominates(ReduceOp op, const Expr& m, const Expr& value, StepId reader, Bounding how) const;
    [[nodiscard]] const Compute& compute(StepId step) const;
    [[nodiscard]] bool is_known_before(const Expr& e, StepId step) const;
    [[nodiscard]] bool is_read_in_place(const Read& r) const;

    const ScheduledKernel& kernel_;
};

/// The exponentials of the step that a CPU computes as `exp_nonpositive` (emit/cpu/prelude_math.inc). Their argument is
/// a value less a maximum over such values, or a minimum less one of its values. A value is that of a variable, a
/// product of two such or with a number, or a select between such values. The product is rounded before the
/// subtraction, as it was for the extremum. Rounded once with the difference, it might lie beyond the extremum.
std::vector<const Unary*> nonpositive_exponentials(const ScheduledKernel& kernel, const Step& step);
/// Whether such a side of the difference is rounded by itself: it has a product.
bool is_rounded_before(const Expr& side);

}  // namespace napkin
