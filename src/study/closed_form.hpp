#pragma once
// The kernels of a form by the closed form of their costs on a machine, which a plan's search does not enter: what
// `napkin cost` says of GPUs.
#include <vector>

#include "cost/on_machine.hpp"
#include "plan/choose.hpp"
#include "plan/parts.hpp"

namespace napkin {

/// Sizes that the diagram's schedule fixes by hand of all kernels; closed_form adds those of each.
MachineCostOptions costs_by_hand(const Diagram& diagram);

/// What a core holds, in values of the widest type that the diagram computes in or loads.
double values_a_core(const Diagram& diagram, const Machine& machine);

struct ClosedForm {
    Cut cut;                               ///< the form, with streams in parts where cores share them
    std::vector<TileKernel> tiles;         ///< of its kernels, cut by the subloops of its schedule
    std::vector<KernelOnMachine> kernels;  ///< in their order
};

/// Streams in parts make kernels of their own. Parts that are not by hand are as many as the closed form finds worth
/// their merge where cores would be idle. Pre: `extents` binds derived.diagram. Errors: those of choices by hand, and
/// memory-exceeded, bad-cluster, bad-devices.
Result<ClosedForm> closed_form(const Derived& derived, const Extents& extents, const Machine& machine,
                               const MachineCostOptions& by_user, const PlanOptions& plan);

/// The sizes of the core's groups, chunks and parts that a cost is of.
TileSizes tiles_of(const KernelOnMachine& cost, const Extents& extents);

}  // namespace napkin
