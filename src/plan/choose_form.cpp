#include "plan/choose_form.hpp"

#include <algorithm>
#include <limits>

#include "cost/on_machine.hpp"
#include "plan/choose.hpp"

namespace napkin {

namespace {

bool has_what_is_named(const Derived& alone, const Extents& extents, const std::vector<ScheduleItem>& by_hand) {
    std::vector<ScheduleItem> named;
    for (const ScheduleItem& item : by_hand)
        if (!item.clauses.empty() && std::any_of(alone.kernels.begin(), alone.kernels.end(),
                                                 [&](const Kernel& kernel) { return kernel.name == item.kernel; }))
            named.push_back(item);
    return named.empty() || schedules_by_hand(named, tiles_of(alone, extents, {})).ok();
}

}  // namespace

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_hand) {
    KernelTimes known;
    Derived least = with_least_cost(derived, [&](const Derived& alone, double enough) {
        if (!has_what_is_named(alone, extents, by_hand)) return std::numeric_limits<double>::infinity();
        return machine.kind == MachineKind::gpu ? quick_seconds(alone, extents, machine)
                                                : quick_seconds(alone, extents, machine, known, enough);
    });
    // What is asked of a GPU above takes each product in the type of what it reads, where a kernel on a matrix unit rounds what it computes.
    if (machine.kind != MachineKind::gpu || names_of(least.kernels) == names_of(derived.kernels)) return least;
    PlanOptions quick;
    quick.quick = true;
    const auto first = choose_plan(derived, extents, machine, by_hand, quick),
               other = choose_plan(least, extents, machine, by_hand, quick);
    return first && (!other || first->seconds() < other->seconds()) ? derived : least;
}

}  // namespace napkin
