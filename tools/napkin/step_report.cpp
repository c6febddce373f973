#include "napkin/step_report.hpp"

#include "plan/choose.hpp"
#include "plan/overrides.hpp"
#include "support/share_out.hpp"

namespace napkin::cli {
Result<StepReport> step_report(const Options& options, StepTexts texts) {
    PipelineOptions file;
    if (const Status read = read_schedule(options, file); !read) return read.errors();
    const auto sized = compile(options, Pass::size);
    if (!sized) return sized.errors();
    const auto planned = compile(options, sized->machine.kind == MachineKind::gpu ? Pass::plan : Pass::size);
    const Compilation& of = planned ? *planned : *sized;
    const auto items = all_overrides(of.derived, {}, file.schedule_file);
    if (!items) return items.errors();
    auto report = steps_for(of.derived, of.extents, of.machine, *items,
                            planned ? Result<Plan>(planned->plan) : Result<Plan>(planned.errors()), texts);
    if (!report || !report->expected_s) return report;
    if (texts == StepTexts::left_out) return report;
    const auto program = tiles_in_letters(of.derived, file.schedule_file);
    if (!program) return program.errors();
    try_programs(of.derived, *program, *report);
    return report;
}

Result<std::vector<StepsOnMachine>> steps_on_machines(const Options& options, const std::vector<std::string>& machines) {
    std::vector<StepsOnMachine> out;
    for (const std::string& machine : machines) {
        const auto loaded = load_machine(machine);
        if (!loaded) return loaded.errors();
        // A processor is among all machines, and has no steps.
        if (loaded->kind == MachineKind::gpu || machines.size() == 1)
            out.push_back({machine, rate_sources(*loaded), std::nullopt, {}});
    }
    std::vector<std::optional<Result<StepReport>>> reports(out.size());
    share_out(out.size(), [&](std::size_t i) {
        Options one = options;
        one.machine = out[i].machine;
        reports[i] = step_report(one, StepTexts::left_out);
    });
    std::vector<Diagnostic> errors;
    bool any = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
        Result<StepReport>& report = *reports[i];
        if (report)
            out[i].report = std::move(report).value(), any = true;
        else
            out[i].why = report.errors().front(), append(errors, report.errors());
    }
    if (!any && !errors.empty()) return errors;
    return out;
}

}  // namespace napkin::cli
