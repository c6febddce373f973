#pragma once
// Subloops cut a reduction inside of a stream once more, over an axis that it reduces or that its target has. The core
// then holds only a part of what that reduction alone loads.
#include <string>
#include <utility>
#include <vector>

#include "support/result.hpp"
#include "tile/program.hpp"

namespace napkin {

/// The kernel with each of these reductions, and the loads that it alone needs, in a loop over the parts of the axis.
///  - A reduced axis: the accumulator begins as the statement's carry, or as the operator's identity, and each part
///    continues from it.
///  - An axis of the target: each part computes a part of the target, which lies whole at the core.
/// The reduced axes of one statement are the outer loops. Sizes are TileSizes::sub, by axis.
/// Errors: no-subloop, where the statement is no reduction, has no such axis, or loads nothing along it, or where a
/// loop already cuts the axis around it.
Result<TileKernel> with_subloops(const Diagram& diagram, TileKernel kernel,
                                 std::vector<std::pair<VariableId, AxisId>> subloops);

/// What subloops over one axis make of a kernel.
struct SubloopsOver {
    TileKernel kernel;
    int num_cut = 0;      ///< reductions
    std::string refusal;  ///< why the first reduction that cannot be cut is not; "" without one
};
/// Cuts every reduction over the axis, or along it, that can be cut.
SubloopsOver with_subloops_over(const Diagram& diagram, TileKernel kernel, AxisId axis);

}  // namespace napkin
