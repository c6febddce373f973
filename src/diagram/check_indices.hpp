#pragma once
// Whether the values of integer inputs lead inside of the arrays that they index, wherever what they index is taken.
#include <optional>

#include "diagram/evaluate.hpp"
#include "support/source.hpp"

namespace napkin {

/// The first element outside of its array: index-out-of-range, with the array, the position, the value and what there is. `values` holds
/// at least the inputs; what other arrays decide is not looked at.
std::optional<Diagnostic> check_indices(const Diagram& diagram, const Extents& extents, const Values& values);

}  // namespace napkin
