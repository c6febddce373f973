#include "plan/choose_form.hpp"

#include <limits>

#include "cost/on_machine.hpp"
#include "plan/choose.hpp"

namespace napkin {
namespace {

/// Starting and joining the threads of one kernel.
constexpr double launch_seconds = 10e-6;

double predicted_seconds(const Derived& derived, const Extents& extents, const Machine& machine) {
    if (machine.kind == MachineKind::gpu) return quick_seconds(derived, extents, machine);
    const auto plan = choose_plan(derived, extents, machine);
    if (!plan) return std::numeric_limits<double>::infinity();
    double seconds = 0;
    for (const auto& kernel : plan->kernels) seconds += kernel.predicted_seconds + launch_seconds;
    return seconds;
}

}  // namespace

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine) {
    return with_least_cost(derived, [&](const Derived& alone) { return predicted_seconds(alone, extents, machine); });
}

}  // namespace napkin
