#pragma once
// Whether the values of integer inputs lead inside of the arrays that they index, wherever what they index is taken.
#include <optional>

#include "diagram/evaluate.hpp"
#include "support/source.hpp"

namespace napkin {

/// The first element outside of its array: index-out-of-range, with the array, the position, the value and what there is. `values` holds
/// at least the inputs; what other arrays decide is not looked at.
std::optional<Diagnostic> check_indices(const Diagram& diagram, const Extents& extents, const Values& values);

/// The arrays that indices are read from, and those that the conditions around such reads are, ascending.
std::vector<ArrayId> arrays_in_indices(const Diagram& diagram);

/// The greatest value up to which an input's elements, from 0 on, lead inside of every array that they index; none where they index
/// nothing, or where nothing but 0 does.
std::optional<std::int64_t> greatest_index(const Diagram& diagram, const Extents& extents, ArrayId input);

}  // namespace napkin
