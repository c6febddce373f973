#include "napkin/step_report.hpp"

#include "plan/blocks.hpp"
#include "plan/overrides.hpp"
#include "support/share_out.hpp"

namespace napkin::cli {
namespace {

Result<StepReport> with_time(Result<StepReport> report, const std::optional<double>& expected_s) {
    if (report) report->expected_s = expected_s;
    return report;
}

}  // namespace

Result<StepReport> step_report(const Options& options, StepTexts texts) {
    PipelineOptions file;
    if (const Status read = read_schedule(options, file); !read) return read.errors();
    auto compilation = compile(options, Pass::size);
    if (!compilation) return compilation.errors();
    // The steps are of the form that is planned, where one can be.
    std::optional<double> expected_s;
    if (compilation->machine.kind == MachineKind::gpu && has_cuda_blocks(compilation->machine))
        if (auto planned = compile(options, Pass::plan); planned) {
            expected_s = planned->plan.seconds();
            *compilation = std::move(planned).value();
        }
    const auto items = all_overrides(compilation->derived, {}, file.schedule_file);
    if (!items) return items.errors();
    if (compilation->machine.kind == MachineKind::gpu && is_of_a_kernel(*items)) {
        const auto planned = compile(options, Pass::plan);
        if (!planned) return planned.errors();
        return with_time(placed_steps(planned->plan, planned->machine, *items), planned->plan.seconds());
    }
    return with_time(paper_steps(compilation->derived, compilation->extents, compilation->machine, *items, texts),
                     expected_s);
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
