// What planning chooses in each pass of a schedule.
#include "plan/complete.hpp"

#include "lower/insert_barriers.hpp"
#include "lower/passes.hpp"
#include "schedule/fragments.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
void choose_all_fragments(ScheduledKernel& kernel) {
    if (kernel.on_tensor_cores() && !choose_fragments(kernel)) kernel.schedule.mma_m.value = -1;
}
/// Warps share each statement as a whole: panels would leave most of them without work.
void choose_fusions(ScheduledKernel& kernel) {
    if (!kernel.in_blocks()) form_fusions(kernel), fuse_reductions(kernel);
}
template <void (*choose)(ScheduledKernel&)>
void on_tensor_cores(ScheduledKernel& kernel) {
    if (kernel.on_tensor_cores()) choose(kernel);
}

/// What chooses in each pass but in that of the slots, for which the model's clocks are needed.
struct Chooser {
    SchedulePass pass;
    void (*choose)(ScheduledKernel&);
};
constexpr Chooser choosers[] = {
    {SchedulePass::orders, choose_orders},
    {SchedulePass::atoms, choose_atoms},
    {SchedulePass::fragments, choose_all_fragments},
    {SchedulePass::fusions, choose_fusions},
    {SchedulePass::storage, choose_storage},
    {SchedulePass::roles, choose_roles},
    {SchedulePass::ping_pong, choose_ping_pong},
    {SchedulePass::rescaling, choose_rescale},
    {SchedulePass::stages, on_tensor_cores<choose_stages>},
    {SchedulePass::staging, on_tensor_cores<choose_staging>},
    {SchedulePass::group_stages, on_tensor_cores<choose_group_stages>},
    {SchedulePass::scheduler, choose_tile_scheduler},
    {SchedulePass::column_parts, choose_column_parts},
};
void choose_in_pass(SchedulePass pass, ScheduledKernel& kernel) {
    const auto chooser = find_if(choosers, [&](const Chooser& c) { return c.pass == pass; });
    if (chooser != std::end(choosers)) chooser->choose(kernel);
}
constexpr SchedulePass first_without_atoms = SchedulePass::fragments;
}  // namespace

bool suits_matrix_unit(ScheduledKernel& kernel, KernelSchedule schedule) {
    // Which statements are products, sizes and orders alone say.
    choose_any_sizes(kernel, schedule);
    add_sizes(kernel, std::move(schedule));
    choose_orders(kernel);
    return kernel.on_tensor_cores() && mma_roles(kernel).refusal.empty();
}

ScheduledKernel complete(ScheduledKernel unscheduled, KernelSchedule schedule, Completion completion,
                         ProductOrder products, const Simulator* model) {
    add_atoms(unscheduled, std::move(schedule));
    complete_with_atoms(unscheduled, completion, products, model);
    return unscheduled;
}

void add_atoms(ScheduledKernel& unscheduled, KernelSchedule schedule) {
    choose_any_sizes(unscheduled, schedule);
    add_sizes(unscheduled, std::move(schedule));
    run_passes(unscheduled, [](SchedulePass pass, ScheduledKernel& k) { choose_in_pass(pass, k); }, first_without_atoms);
}

void complete_with_atoms(ScheduledKernel& kernel, Completion completion, ProductOrder products, const Simulator* model) {
    const auto choose = [&](SchedulePass pass, ScheduledKernel& k) {
        if (pass == SchedulePass::slots && products == ProductOrder::ahead) choose_slots(k, model);
        choose_in_pass(pass, k);
    };
    run_passes(kernel, choose, SchedulePass::barriers, first_without_atoms);
    if (completion == Completion::whole || (completion == Completion::for_estimate && !kernel.on_tensor_cores()))
        insert_barriers(kernel);
}

ChosenAtoms chosen_atoms(const ScheduledKernel& kernel) {
    const KernelSchedule& s = kernel.schedule;
    ChosenAtoms out{s.atoms, s.places};
    // Statements of a block have their own vectors, unless an override fuses them.
    if (!kernel.in_blocks() || any_of(s.atoms, [](const Atom& atom) { return atom.run >= 0; }))
        out.vector_axis = s.vector_axis, out.panel_vectors = s.panel_vectors;
    return out;
}

}  // namespace napkin
