#include "plan/other_sizes.hpp"

#include <algorithm>

#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

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

bool takes_any(const Plan& plan, const std::set<std::string>& axes) {
    return all_of(plan.kernels, [&](const KernelPlan& kernel) {
        const ScheduledKernel& k = kernel.scheduled;
        return all_of(k.program->diagram.axes.ids(), [&](AxisId axis) {
            const bool is_used = any_of(k.kernel->variables, [&](const Variable& variable) {
                return any_of(variable.dims, [&](const Index& dim) { return dim.depends_on(axis); });
            });
            return !is_used || k.is_any(axis) || !axes.contains(k.program->diagram.axis(axis).name);
        });
    });
}

std::int64_t longest_of_any(const Plan& plan) {
    std::int64_t longest = 1;
    for (const KernelPlan& kernel : plan.kernels)
        for (const auto& [axis, planned_at] : kernel.schedule().any)
            longest = std::max(longest, kernel.scheduled.extent(axis));
    return longest;
}

std::optional<Plan> with_blocks_for(const Plan& made, Plan read, const Machine& machine) {
    for (std::size_t k = 0; k < read.kernels.size(); ++k) {
        ScheduledKernel& kernel = read.kernels[k].scheduled;
        const std::int64_t cores = machine.num_cores() * std::max(1, kernel.unit.blocks_a_core);
        KernelSchedule schedule = with_blocks_of(kernel, made.kernels[k].scheduled.num_groups(), cores);
        if (schedule == kernel.schedule) continue;
        kernel = scheduled(kernel.program, k, kernel.extents, std::move(schedule), kernel.unit);
        if (!broken_rules(kernel).empty()) return std::nullopt;
    }
    return read;
}

std::vector<Plan> in_other_parts(const Plan& made, const Plan& read, const Machine& machine) {
    std::vector<Plan> out;
    if (made.change.factors == FactorForm::copied) return out;
    for (const KernelPlan& kernel : read.kernels) {
        const ScheduledKernel& k = kernel.scheduled;
        const StreamParts& parts = k.kernel->parts;
        if (!parts.any() || !k.is_any(parts.part) || k.schedule.split.by_user) continue;
        const std::int64_t now = k.extent(parts.part), tiles = ceil_div(k.num_groups(), now),
                           cores = machine.num_cores() * std::max(1, k.unit.blocks_a_core),
                           blocks = ceil_div(k.extent(parts.axis), k.schedule.stream.at(parts.axis).value);
        const std::int64_t most = std::clamp<std::int64_t>(ceil_div(cores, tiles), 2, std::max<std::int64_t>(2, blocks));
        for (const std::int64_t number : {most, std::max<std::int64_t>(2, ceil_div(most, 2))}) {
            if (number == now) continue;
            Plan& other = out.emplace_back(made);
            other.change.parts[kernel.whole] = number;
            for (KernelPlan& cut : other.kernels)
                if (cut.whole == kernel.whole && cut.scheduled.kernel->parts.any())
                    cut.scheduled.schedule.split.value = number;
        }
    }
    return out;
}

}  // namespace napkin
