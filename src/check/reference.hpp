#pragma once
// The definition evaluated in double precision with, beside every value, how far what runs may be from it.
#include "check/bounded_rows.hpp"
#include "check/execution.hpp"
#include "diagram/evaluate.hpp"

namespace napkin {

/// Evaluates all equations of the definition. `values` holds the inputs by ArrayId, which are exact; the result every
/// array. The execution's depths and types are by the diagram's equations and arrays; those of arrays added at the end
/// are not needed. For infinite or NaN inputs, conditions stand at factors (diagram/factor_conditions.hpp).
BoundedValues evaluate_bounded(const Diagram& definition, const Extents& extents, const Values& values,
                               const Execution& execution);

}  // namespace napkin
