#pragma once
// Whether the values of integer arrays lead inside of the arrays that they index, wherever what they index is taken.
#include <optional>

#include "diagram/evaluate.hpp"
#include "support/source.hpp"

namespace napkin {

/// Reports the first element outside of its array. The error is index-out-of-range, with the array, the position, the
/// value and the valid range. `values` holds the arrays that are known so far. What other arrays decide is not looked
/// at. With `fresh`, only what these arrays have a part in is checked.
std::optional<Diagnostic> check_indices(const Diagram& diagram, const Extents& extents, const Values& values,
                                        const std::vector<ArrayId>& fresh = {});

/// The arrays that indices are read from, and those that the conditions around such reads are, ascending.
std::vector<ArrayId> arrays_in_indices(const Diagram& diagram);

/// The greatest value up to which an input's elements, from 0 on, stay inside of every array that they index. None
/// where they index nothing, or where only 0 does.
std::optional<std::int64_t> greatest_index(const Diagram& diagram, const Extents& extents, ArrayId input);

}  // namespace napkin
