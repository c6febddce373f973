#pragma once
// Arrays whose values cancel, such as the maximum that softmax takes off: whatever number stands in its place, the
// outputs are the same. The outputs' derivative by such an array is 0, and nothing has to be computed for it.
#include <set>

#include "diagram/diagram.hpp"

namespace napkin {

/// The maxima and minima that cancel. Shown by what becomes of all values when δ is added to one of them. A value
/// stays, moves by c·δ, or is multiplied by e^(c·δ). The outputs must stay.
std::set<ArrayId> cancelling_references(const Diagram& diagram);

}  // namespace napkin
