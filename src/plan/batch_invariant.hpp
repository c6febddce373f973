#pragma once
// Batch-invariant plans: the bits of a row of an output do not depend on how many rows there are beside it.
//
// Rows are the values of all axes that no equation reduces. A kernel's order of additions
// (lower/order_of_additions.hpp) is chosen once for all numbers of rows. It is that of a plan for a fixed number of
// them, at the lengths of the reduced axes at hand. A plan for another number of rows then keeps this order: its K
// blocks, parts of streams, instructions, and the lanes and warps of its reductions. Tiles of rows, CTAs and stages are
// chosen as ever. No plan uses stream-K, and no warp decides for its rows together when a maximum moves.
#include <functional>
#include <optional>

#include "plan/choose.hpp"

namespace napkin {

/// The diagram, whose rows may be of any number: tiles of them may be longer than an axis.
Diagram with_any_rows(Diagram diagram);

/// The extents at which the order is chosen. Reduced axes have the lengths at hand, and those of any size the next one
/// of a few that stand for others. All other axes have one length, as far as the diagram's sizes allow it.
Extents extents_of_order(const Diagram& diagram, const Extents& extents);

/// Plans the form at some extents.
using PlanAt = std::function<Result<Plan>(const Extents& extents, const PlanOptions& options)>;

/// The plan at the extents. Where no search finds one that keeps the order, it is the plan from which the order comes,
/// read at these extents. Errors: those of `plan`; not-batch-invariant (why the order cannot be kept).
Result<Plan> batch_invariant_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                                  const PlanOptions& options, const PlanAt& plan);

/// Whether the kernel keeps the order that the options ask for. The forms of functions are not compared.
bool keeps_order(const PlanOptions& options, const ScheduledKernel& kernel);
/// The error where a batch-invariant plan may not have this kernel.
std::optional<Diagnostic> order_fault(const PlanOptions& options, const ScheduledKernel& kernel);

}  // namespace napkin
