#pragma once
// Zeros around arrays, which copies write for what lies outside. In a kernel that multiplies
//   guarded[t, r, c] = where(t + r >= 1 and t + r <= size(y), X[t + r - 1, c], 0)
// the copy of X brings just that, as the condition says no more than that the index is inside.
#include <optional>

#include "derive/derived.hpp"

namespace napkin {

/// Products multiply X itself in place of such maps, and their kernels have X among Kernel::zero_outside. None: the
/// form has no such map.
std::optional<Derived> with_padding_in_place(const Derived& derived);

}  // namespace napkin
