#include "plan/columns.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "plan/grid.hpp"
#include "plan/reasons.hpp"
#include "schedule/column_parts.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/lazy_maximum.hpp"
#include "schedule/ones_column.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Sums of threads that may be columns, and the products that have them then: steps. Where one of the two has a slot by hand, both have to have the same.
std::vector<std::pair<StepId, StepId>> possible_columns(const ScheduledKernel& kernel,
                                                        const std::map<StepId, Slot>& by_hand) {
    std::vector<std::pair<StepId, StepId>> out;
    if (!kernel.on_matrix_unit()) return out;
    const auto slot_of = [&](StepId step) { return value_or(kernel.schedule.slots, step, Slot{}); };
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 || kernel.atom(step).kind != AtomKind::fragment || kernel.atom(step).by_hand) continue;
        const auto found = product_beside(kernel, step);
        const StepId* product = std::get_if<StepId>(&found);
        const StepId sum = kernel.number(step);
        if (product && ((!by_hand.contains(sum) && !by_hand.contains(*product)) || slot_of(sum) == slot_of(*product)))
            out.emplace_back(sum, *product);
    }
    return out;
}

/// The kernel with these columns; none where they need room that it has not.
std::optional<ScheduledKernel> with_columns(const ScheduledKernel& kernel,
                                            const std::vector<std::pair<StepId, StepId>>& columns, Completion completion) {
    KernelSchedule schedule = kernel.schedule;
    for (const auto& [sum, product] : columns) {
        schedule.atoms[kernel.step(sum).atom].kind = AtomKind::column;
        if (const auto slot = schedule.slots.find(product); slot != schedule.slots.end())
            schedule.slots[sum] = slot->second;
    }
    ScheduledKernel out = with_sizes(
        unscheduled(kernel.program, at(static_cast<int>(kernel.kernel - kernel.program->kernels.data())),
                    kernel.extents, kernel.unit),
        std::move(schedule));
    apply_atoms(out);
    apply_slots(out);
    out.lazy = chosen_lazy_maximum(out);
    out.column_parts = chosen_column_parts(out);
    if (out.lazy.has_value() != kernel.lazy.has_value()) return std::nullopt;
    apply_places(out);
    if (out.arena_bytes() > kernel.unit.share_bytes || spilled_registers(out) > spilled_registers(kernel))
        return std::nullopt;
    if (completion == Completion::whole) synchronize(out);
    return out;
}

}  // namespace

Simulation choose_columns(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads,
                          const std::map<StepId, Slot>& by_hand, Completion completion, std::int64_t walk_limit) {
    const Figure& pace = model.machine().ones_pace;
    const std::vector<std::pair<StepId, StepId>> columns = pace.known() ? possible_columns(kernel, by_hand)
                                                                        : std::vector<std::pair<StepId, StepId>>();
    std::optional<ScheduledKernel> other = columns.empty() ? std::nullopt : with_columns(kernel, columns, completion);
    Simulation time = choose_grid(kernel, model, threads, walk_limit);
    if (!other) return time;
    Simulation with = choose_grid(*other, model, threads, walk_limit);
    const bool is_faster = pace.value * with.seconds < time.seconds;
    ScheduledKernel& chosen = is_faster ? *other : kernel;
    for (const auto& [sum, product] : columns) {
        std::string& reason = chosen.schedule.atoms[kernel.step(sum).atom].reason;
        const std::string& name = kernel.variable(variable_of(kernel.step(product))).name;
        reason = is_faster
                     ? fmt::format("beside {}; added up by threads {}", name, time_change(time.seconds / with.seconds))
                     : fmt::format("as a column of {} {}", name, time_change(with.seconds / time.seconds));
    }
    if (!is_faster) return time;
    kernel = std::move(*other);
    return with;
}

}  // namespace napkin
