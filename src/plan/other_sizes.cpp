#include "plan/other_sizes.hpp"

#include <algorithm>
#include <memory>

#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "plan/overrides.hpp"
#include "plan/recall.hpp"

namespace napkin {
namespace {

/// The schedule with the CTAs, or threads, that the kernel's tiles at hand need.
KernelSchedule with_blocks_of(const ScheduledKernel& kernel, std::int64_t planned_groups, std::int64_t cores) {
    KernelSchedule out = kernel.schedule;
    const std::int64_t groups = kernel.num_groups();
    if (!out.threads.by_user) out.threads.value = std::max<std::int64_t>(1, std::min(cores, groups));
    // One CTA for each tile stays so. Fewer of them take one tile after the other.
    if (out.grid.value > 0 && !out.grid.by_user)
        out.grid.value = out.grid.value == planned_groups ? groups : std::min(out.grid.value, groups);
    return out;
}

}  // namespace

std::optional<Plan> at_other_sizes(const Plan& plan, const Derived& derived, const Extents& extents, const Machine& machine) {
    const auto form = changed_form(derived, extents, machine, plan.change);
    const auto items = all_overrides(derived, {}, nullptr);
    if (!form || !items || form->form.kernels.size() != plan.kernels.size()) return std::nullopt;
    const auto program = std::make_shared<const TileProgram>(tiles_of(form->form, form->extents, *items));
    Plan out{plan.machine, plan.change, {}};
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
        const ScheduledKernel& planned = plan.kernels[k].scheduled;
        const StreamParts& parts = planned.kernel->parts;
        if (parts.any()) {
            const auto block = planned.schedule.stream.find(parts.axis);
            const std::int64_t length = block == planned.schedule.stream.end() ? 1 : block->second.value;
            if (form->extents[parts.part] > ceil_div(form->extents[parts.axis], length)) return std::nullopt;
        }
        const auto scheduled_as = [&](const KernelSchedule& schedule) {
            return scheduled(program, k, form->extents, schedule, planned.unit);
        };
        ScheduledKernel kernel = scheduled_as(planned.schedule);
        const std::int64_t cores = machine.num_cores() * std::max(1, planned.unit.blocks_a_core);
        const KernelSchedule schedule = with_blocks_of(kernel, planned.num_groups(), cores);
        if (!(schedule == kernel.schedule)) kernel = scheduled_as(schedule);
        if (!broken_rules(kernel).empty()) return std::nullopt;
        KernelPlan next = plan.kernels[k];
        next.scheduled = std::move(kernel);
        out.kernels.push_back(std::move(next));
    }
    return out;
}

}  // namespace napkin
