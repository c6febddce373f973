#pragma once
// Whether another way of computing a diagram's outputs in double precision gives what its definition gives, element by element.
#include <optional>
#include <string>

#include "diagram/evaluate.hpp"

namespace napkin {

/// One element that differs.
struct Disagreement {
    std::string array;
    std::int64_t place = 0;  ///< in row-major order
    double wanted = 0, made = 0;
    double allowed = 0;  ///< what rounding may do to the definition here
};
/// "O at 7 is nan in place of 1.5"
std::string to_string(const Disagreement& d);

/// The definition evaluated once, to compare with.
class Definition {
public:
    /// `inputs` by ArrayId of the diagram, which must live as long as this.
    Definition(const Diagram& diagram, const Extents& extents, const Values& inputs);

    /// The first output of the definition that `made`, the values of a diagram with outputs of the same names, has otherwise. What is finite
    /// must be finite, within what rounding may do; an infinity must be the same infinity and NaN must be NaN, with two exceptions. Where
    /// an input is infinite or NaN, what is not finite must only stay so, and a NaN leaves open what is made: a chunk of weights 0 that is
    /// skipped does not show that 0·inf is NaN. Where nothing infinite stands in inputs or constants, the definition has overflowed on its
    /// way: a rewrite may stay in range.
    [[nodiscard]] std::optional<Disagreement> difference(const Diagram& other, const Values& made) const;

    [[nodiscard]] const Values& values() const { return values_; }

private:
    [[nodiscard]] bool agree(double want, double have, double allowed) const;

    const Diagram* diagram_;
    Values values_;
    bool finite_inputs_ = true, finite_constants_ = true;
    double largest_ = 0;  ///< finite magnitude on the way, up to a bound: what cancels leaves its rounding behind
};

/// The inputs given for one diagram, for another with inputs of the same names.
Values inputs_for(const Diagram& other, const Diagram& diagram, const Values& given);

}  // namespace napkin
