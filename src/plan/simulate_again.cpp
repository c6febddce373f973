#include "plan/simulate_again.hpp"

#include "machine/block_machine.hpp"
#include "plan/recall.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

/// The machine that the kernel was planned on: as one of its blocks sees a GPU.
Machine machine_of(const ScheduledKernel& kernel, const Machine& machine) {
    if (machine.kind != MachineKind::gpu) return machine;
    const auto copying = kernel.producer_role() ? kernel.producer_role()->workers : 0;
    return block_machine(machine, static_cast<int>(kernel.schedule.warps.value), kernel.unit.blocks_a_core, copying);
}

}  // namespace

std::vector<Simulation> simulate_again(const Derived& derived, const Extents& extents, const Machine& machine,
                                       const Plan& plan, const SimulateAgain& how) {
    const auto form = changed_form(derived, extents, machine, plan.change);
    internal_check(form && form->form.kernels.size() == plan.kernels.size(),
                   "simulate again: the plan is of another form");
    std::vector<Simulation> out;
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
        const ScheduledKernel& kernel = plan.kernels[k].scheduled;
        Machine own = machine_of(kernel, machine);
        const auto simulated = [&](std::int64_t threads, bool explains) {
            const Simulator model(form->form, form->form.kernels[k], kernel.program->kernels[k], form->extents, own);
            return explains ? model.explain(kernel, threads) : model.run(kernel, threads);
        };
        // A kernel with fewer groups than the machine has cores is planned on all cores, and takes no more of them than
        // it has groups.
        const std::int64_t taken = kernel.schedule.threads.value, all = own.num_cores();
        const std::int64_t threads = how.threads ? *how.threads
                                     : taken == all || simulated(taken, false).seconds == plan.kernels[k].time.seconds
                                         ? taken
                                         : all;
        if (how.clock_hz) own.clock_hz.value = *how.clock_hz;
        out.push_back(simulated(threads, how.explains));
    }
    return out;
}

}  // namespace napkin
