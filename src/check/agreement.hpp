#pragma once
// Whether another way of computing a diagram's outputs in double precision gives what its definition gives, element by
// element.
#include <optional>
#include <string>

#include "check/reference.hpp"
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

    /// The first output element of the definition that differs in `made`, the values of a diagram with outputs of the
    /// same names. An infinity must be the same infinity, NaN must be NaN and what is finite must be finite. Finite
    /// values may differ by a small multiple of the bound of reference.hpp for double precision, plus what cancellation
    /// leaves. That bound follows from the definition alone. If an input is itself infinite or NaN, any result may
    /// stand for a NaN of the definition. The reason is that a skipped chunk of weights 0 does not show that 0·inf is
    /// NaN.
    [[nodiscard]] std::optional<Disagreement> difference(const Diagram& other, const Values& made) const;

    [[nodiscard]] const BoundedValues& values() const { return values_; }

private:
    const Diagram* diagram_;
    BoundedValues values_;
    double left_behind_ = 0;  ///< by what cancels on the way
};

/// The inputs given for one diagram, for another with inputs of the same names.
Values inputs_for(const Diagram& other, const Diagram& diagram, const Values& given);

}  // namespace napkin
