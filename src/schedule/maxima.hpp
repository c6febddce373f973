#pragma once
// Which of a kernel's values are maxima over others, so that an exponential of the difference is at most 1.
#include <optional>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// How a maximum bounds its values.
enum class Dominance : std::uint8_t {
    exactly,  ///< none of them is above it; 0 stands in for it only where it is -inf, as all of them are then
    nearly,   ///< 0 may stand in for it also where it is +inf, as the result is infinite anyway
};

class Maxima {
public:
    explicit Maxima(const ScheduledKernel& kernel) : kernel_(kernel) {}

    /// The one step that computes the variable; none where none or several do.
    [[nodiscard]] std::optional<StepId> definition(VariableId id) const;

    /// Whether `m` is a maximum over values, `value` among them, or 0 where that maximum is infinite. Both are as step
    /// `reader` finds them. What is read has to be computed before it is read. A maximum that is updated later may be
    /// less than the value.
    [[nodiscard]] bool dominates(const Expr& m, const Expr& value, StepId reader, Dominance how) const;

private:
    [[nodiscard]] const Compute& compute(StepId step) const;
    [[nodiscard]] bool is_known_before(const Expr& e, StepId step) const;
    [[nodiscard]] bool is_read_in_place(const Read& r) const;

    const ScheduledKernel& kernel_;
};

/// The exponentials of the step that a CPU computes as `exp_nonpositive` (emit/cpu/prelude_math.inc). Their argument is
/// a value less a maximum over such values. A value is that of a variable, a product of two such or with a number, or a
/// select between such values. The product is rounded before the subtraction, as it was for the maximum. Rounded once
/// with the difference, it might be above the maximum.
std::vector<const Unary*> nonpositive_exponentials(const ScheduledKernel& kernel, const Step& step);

}  // namespace napkin
