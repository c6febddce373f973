#pragma once
// What the kernels of a form cost on a machine: at the sizes and in the time of their plan. Where there is none, a
// closed form of their costs finds sizes, and estimates a time.
#include <memory>
#include <vector>

#include "cost/on_machine.hpp"
#include "plan/choose.hpp"
#include "plan/parts.hpp"
#include "plan/plan.hpp"

namespace napkin {

/// Sizes that the diagram's schedule fixes by hand of all kernels; closed_form_costs adds those of each.
MachineCostOptions costs_by_hand(const Diagram& diagram);

/// What a core holds, in values of the widest type that the diagram computes in or loads.
double values_a_core(const Diagram& diagram, const Machine& machine);

struct KernelCosts {
    Cut cut;                               ///< the form, with streams in parts where cores share them
    std::vector<TileKernel> tiles;         ///< of its kernels, cut by the subloops of its schedule
    std::vector<KernelOnMachine> kernels;  ///< in their order
};

/// Those of a plan of `derived`, in its sizes, times and busy units. Errors: those of parse_schedule_file.
Result<KernelCosts> planned_costs(const Derived& derived, const Extents& extents, const Machine& machine, const Plan& plan,
                                  const MachineCostOptions& by_user, const std::shared_ptr<const Source>& file);

/// Streams in parts make kernels of their own. Parts that are not by hand are as many as the closed form finds worth
/// their merge where cores would be idle. Pre: `extents` binds derived.diagram. Errors: those of choices by hand, and
/// memory-exceeded, bad-cluster, bad-devices.
Result<KernelCosts> closed_form_costs(const Derived& derived, const Extents& extents, const Machine& machine,
                                      const MachineCostOptions& by_user, const std::shared_ptr<const Source>& file);

/// The sizes of the core's groups, chunks and parts that a cost is of.
TileSizes tiles_of(const KernelOnMachine& cost, const Extents& extents);

}  // namespace napkin
