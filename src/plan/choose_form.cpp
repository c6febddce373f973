#include "plan/choose_form.hpp"

#include <limits>

#include "cost/on_machine.hpp"
#include "plan/choose.hpp"

namespace napkin {
namespace {

double predicted_seconds(const Derived& derived, const Extents& extents, const Machine& machine) {
    if (machine.kind == MachineKind::gpu) return quick_seconds(derived, extents, machine);
    PlanOptions quick;
    quick.quick = true;
    const auto plan = choose_plan(derived, extents, machine, {}, quick);
    if (!plan) return std::numeric_limits<double>::infinity();
    // Each kernel is started, also one that runs on a single core, whose time has no waking of others in it.
    double seconds = plan->seconds();
    for (const KernelPlan& kernel : plan->kernels)
        if (kernel.schedule().threads.value == 1) seconds += machine.launch_s.value;
    return seconds;
}

}  // namespace

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine) {
    return with_least_cost(derived, [&](const Derived& alone) { return predicted_seconds(alone, extents, machine); });
}

}  // namespace napkin
