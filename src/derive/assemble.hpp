#pragma once
// Second half of a stream partition: an analysed set becomes a kernel: head, one loop for each traversal, tails.
#include "derive/analyse.hpp"

namespace napkin {

/// Pre: `analysis` came from analyse() on this diagram. `outputs`: the arrays that must reach memory. Appends the
/// arrays that only the kernel knows (values before a step, chunk arrays) to the diagram; they have no equation there.
Kernel assemble(Diagram& diagram, const Analysis& analysis, std::optional<AxisId> axis, const std::vector<ArrayId>& outputs);

}  // namespace napkin
