#include "plan/prove.hpp"

#include <fmt/format.h>

#include "machine/block_machine.hpp"
#include "plan/recall.hpp"
#include "schedule/fragment_registers.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

Diagnostic no_orders(const std::string& message, const std::string& expected, const std::string& hint, ExitCode code) {
    return Diagnostic{.code = "no-orders", .message = message, .expected = expected, .hint = hint, .exit_code = code};
}

UnitBound unit_bound(const LoopBody& loop, const IterationClocks& clocks, const std::string& unit,
                     double StatementClocks::* of) {
    UnitBound out{unit, 0, {}};
    std::vector<std::pair<double, std::string>> parts;
    for (std::size_t o = 0; o < loop.steps.size(); ++o) {
        const double taken = clocks.of_step[at(loop.steps[o])].*of * clocks.warpgroups;
        out.clocks += taken;
        if (taken >= 0.5) parts.emplace_back(taken, fmt::format("{} {:.0f}", loop.body.operations[o].name, taken));
    }
    stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [taken, text] : parts) out.of.push_back(std::move(text));
    return out;
}

class LoopProver {
public:
    LoopProver(const Simulator& model, const ScheduledKernel& kernel, const ScheduledLoop& loop, const Simulation& time)
        : model_(model), kernel_(kernel), loop_(loop), clocks_(model.iteration_clocks(kernel, loop)) {
        const auto found = modulo_body(kernel, loop, clocks_);
        out_.kernel = kernel.schedule.kernel, out_.axis = kernel.program->diagram.axis(loop.loop->axis).name;
        out_.chunk = kernel.span(loop.loop->axis, loop.scope).tile;
        out_.warpgroups = clocks_.warpgroups, out_.is_ping_pong = kernel.schedule.ping_pong.value;
        if (const auto* why = std::get_if<std::string>(&found))
            out_.refusal = *why;
        else
            out_.loop = std::get<LoopBody>(found);
        for (const CopyClocks& c : time.copies) add_copy(c);
    }

    LoopProof run() {
        if (!out_.refusal.empty()) return std::move(out_);
        const ModuloBody& body = out_.loop.body;
        out_.units = {unit_bound(out_.loop, clocks_, "the tensor cores", &StatementClocks::unit),
                      unit_bound(out_.loop, clocks_, "special functions", &StatementClocks::special),
                      unit_bound(out_.loop, rest_of_own(), "all else that threads issue", &StatementClocks::own)};
        stable_sort(out_.units, [](const UnitBound& a, const UnitBound& b) { return a.clocks > b.clocks; });
        out_.search = search_order(body, modulo_limit, true);
        out_.least_interval = model_.interval(kernel_, clocks_, out_.search.bounds.pace());
        const ModuloOrder scheduled = order_of(kernel_, loop_, out_.loop);
        out_.scheduled = proven({scheduled, pace_of(body, scheduled), registers_of(body, scheduled)});
        out_.kernel_registers = most_registers(kernel_);
        out_.best = out_.search.best.order.sequence.empty() ? out_.scheduled : proven(out_.search.best);
        out_.has_runner_up = !out_.search.runner_up.order.sequence.empty();
        if (out_.has_runner_up) out_.runner_up = proven(out_.search.runner_up);
        return std::move(out_);
    }

private:
    [[nodiscard]] ProvenOrder proven(const ModuloChoice& choice) const {
        return {choice.order, choice.pace, model_.interval(kernel_, clocks_, choice.pace), choice.registers};
    }
    /// What threads issue besides special functions.
    [[nodiscard]] IterationClocks rest_of_own() const {
        IterationClocks out = clocks_;
        for (StatementClocks& c : out.of_step) c.own -= c.special;
        return out;
    }
    void add_copy(const CopyClocks& c) {
        if (kernel_.layout(c.operand).scope != loop_.scope || !out_.refusal.empty()) return;
        ModuloCopy copy{kernel_.variable(c.operand).name, c.answer + c.copy, kernel_.place(c.operand).stages, {}};
        for (std::size_t o = 0; o < out_.loop.steps.size(); ++o)
            if (reads(kernel_.step(out_.loop.steps[o]), c.operand)) copy.readers.push_back(static_cast<int>(o));
        out_.loop.body.copies.push_back(std::move(copy));
    }

    const Simulator& model_;
    const ScheduledKernel& kernel_;
    const ScheduledLoop& loop_;
    IterationClocks clocks_;
    LoopProof out_;
};

}  // namespace

bool LoopProof::is_scheduled_best() const {
    const double alike = 1e-9 * (1 + best.pace);
    return scheduled.pace <= best.pace + alike && scheduled.registers <= best.registers;
}

Result<std::vector<LoopProof>> prove_orders(const Derived& derived, const Extents& extents, const Machine& machine,
                                            const Plan& plan) {
    if (machine.kind != MachineKind::gpu)
        return no_orders(
            fmt::format(
                "{} has no tensor cores: its threads run the statements of a loop one after the other, as they stand",
                machine.name),
            "a GPU whose tensor cores run products beside the warps that begin them", "--machine h200",
            ExitCode::machine_lacks);
    const auto form = changed_form(derived, extents, machine, plan.change);
    internal_check(form && form->form.kernels.size() == plan.kernels.size(), "prove: the plan is of another form");
    std::vector<LoopProof> out;
    std::vector<std::string> why;
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
        const ScheduledKernel& s = plan.kernels[k].scheduled;
        if (!s.on_tensor_cores()) {
            why.push_back(fmt::format("kernel {} has no product on the tensor cores", s.schedule.kernel));
            continue;
        }
        const auto copying = s.producer_role() ? s.producer_role()->workers : 0;
        const Machine block = block_machine(machine, static_cast<int>(s.schedule.warps.value), s.unit.blocks_a_core,
                                            copying);
        const Simulator model(form->form, form->form.kernels[k], s.program->kernels[k], form->extents, block);
        const Simulation time = model.run(s, s.schedule.threads.value);
        for (const ScheduledLoop& loop : s.loops) {
            LoopProof proof = LoopProver(model, s, loop, time).run();
            if (!proof.refusal.empty())
                why.push_back(fmt::format("the loop over {} of kernel {}: {}", proof.axis, proof.kernel, proof.refusal));
            out.push_back(std::move(proof));
        }
        if (s.loops.empty()) why.push_back(fmt::format("kernel {} has no loop", s.schedule.kernel));
    }
    if (all_of(out, [](const LoopProof& p) { return !p.refusal.empty(); }))
        return no_orders("no loop has statements whose order is open: " + join(why, "; "),
                         "a loop on the tensor cores for which a role of its own copies",
                         "a schedule with 'role copies 4', or larger sizes", ExitCode::bad_input);
    return out;
}

}  // namespace napkin
