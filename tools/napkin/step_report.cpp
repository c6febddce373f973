#include "napkin/step_report.hpp"

#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "plan/overrides.hpp"
#include "schedule/schedule.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"

namespace napkin::cli {
Result<StepReport> step_report(const Options& options, StepTexts texts) {
    PipelineOptions file;
    if (const Status read = read_schedule(options, file); !read) return read.errors();
    const auto sized = compile(options, Pass::size);
    if (!sized) return sized.errors();
    const Machine& machine = sized->machine;
    const bool is_planned = machine.kind == MachineKind::gpu && has_cuda_blocks(machine);
    const auto planned = is_planned ? compile(options, Pass::plan) : sized;
    // The steps are those of the plan, where there is one and no line is of the paper's hierarchy alone.
    const Compilation& of = planned ? *planned : *sized;
    const auto items = all_overrides(of.derived, {}, file.schedule_file);
    if (!items) return items.errors();
    const auto has_only_of_steps = [](const ScheduleItem& item) {
        return is_of_steps(item) || item.kind == ChoiceKind::warpgroup;
    };
    if (is_planned && !planned && (is_of_a_kernel(*items) || none_of(*items, has_only_of_steps)))
        return planned.errors();
    if (!is_planned || !planned) return paper_steps(of.derived, of.extents, machine, *items, texts);
    auto report = placed_steps(of.plan, machine, *items);
    if (!report) return report;
    report->expected_s = of.plan.seconds();
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
