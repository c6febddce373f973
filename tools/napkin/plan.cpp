// `napkin plan`: every size and choice for one machine, with its reason.
#include <fmt/format.h>

#include "napkin/command.hpp"
#include "napkin/cost_compare.hpp"
#include "napkin/step_report.hpp"
#include "plan/explain.hpp"
#include "plan/overrides.hpp"
#include "plan/prove.hpp"
#include "steps/choices.hpp"
#include "steps/report.hpp"
#include "study/size_classes.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

struct PlanCommand {
    Options common;
    bool steps = false, prove = false, explain_time = false;
};

ExitCode steps(const Options& options) {
    if (const std::vector<std::string> machines = machine_list(options.machine); machines.size() > 1) {
        const auto reports = steps_on_machines(options, machines);
        if (!reports) return fail(reports.errors(), options);
        print(report_of(*reports), "steps_on_machines", options);
        return ExitCode::success;
    }
    const auto report = step_report(options);
    if (!report) return fail(report.errors(), options);
    print(report_of(*report), "steps", options);
    for (const KernelSteps& kernel : report->kernels)
        for (const PaperStep& step : kernel.steps)
            if (!step.fault.empty()) throw InternalError(step.name + " of kernel " + kernel.kernel + ": " + step.fault);
    return ExitCode::success;
}

/// What a schedule says of its readings is looked at though no plan follows from it.
Status check_readings(const Options& options, const Compilation& compilation) {
    PipelineOptions file;
    if (const Status read = read_schedule(options, file); !read) return read.errors();
    auto items = all_overrides(compilation.derived, {}, file.schedule_file);
    if (!items) return items.errors();
    std::erase_if(*items, [](const ScheduleItem& item) { return !is_of_views(item); });
    if (items->empty()) return Done{};
    if (const auto choices = step_choices(compilation.diagram, compilation.machine, *items); !choices)
        return choices.errors();
    say("note: overhead and units are of the tables and charts of --steps: the plan does not follow from them");
    return Done{};
}

/// The plans for all sizes that the text leaves open; none where it leaves none.
std::optional<ExitCode> plan_of_classes(const std::shared_ptr<const Source>& source, const Options& options) {
    PipelineOptions pipeline = pipeline_options(options, Pass::parse);
    if (!read_schedule(options, pipeline)) return std::nullopt;
    const std::vector<std::string> axes = open_axes(source, pipeline);
    if (axes.empty()) return std::nullopt;
    const auto classes = size_classes(source, pipeline, axes);
    if (!classes) return fail(classes.errors(), options);
    report::Section out;
    out.add(report_of(*classes));
    print(out, "plan", options);
    say(fmt::format("note: --set {}=1000 plans for one length", join(axes, "=")));
    return ExitCode::success;
}

ExitCode plan(const PlanCommand& command) {
    const Options& options = command.common;
    const auto source = read_source(options.file);
    if (!source) return fail(source.errors(), options);
    if (!command.prove && !command.explain_time)
        if (const auto done = plan_of_classes(*source, options)) return *done;
    const auto compilation = compile(*source, options, Pass::plan);
    if (!compilation) return fail(compilation.errors(), options);
    if (const Status s = check_readings(options, *compilation); !s) return fail(s.errors(), options);
    report::Section out;
    out.data("diagram", compilation->diagram.name);
    out.add(report_of(compilation->plan));
    if (command.explain_time)
        out.add(report_of(
            explained_times(compilation->derived, compilation->extents, compilation->machine, compilation->plan)));
    if (command.prove) {
        const auto proofs = prove_orders(compilation->derived, compilation->extents, compilation->machine,
                                         compilation->plan);
        if (!proofs) return fail(proofs.errors(), options);
        for (const LoopProof& proof : *proofs) out.add(report_of(proof));
    }
    print(out, "plan", options);
    return ExitCode::success;
}

}  // namespace

void add_plan(CLI::App& app, Main& main) {
    const auto c = std::make_shared<PlanCommand>();
    Command command(
        app, main, "plan", "Choose tile sizes, threads and vectors for a machine, with reasons",
        "napkin plan examples/attention.nk --set q=8192 --group q=192", [c] {
            if (c->steps && (c->prove || c->explain_time))
                throw UsageError(fmt::format("{} is of a plan's kernels, and --steps of the paper's: one of them",
                                             c->prove ? "--prove" : "--explain-time"));
            return c->steps ? steps(c->common) : plan(*c);
        });
    command.file(c->common);
    command.flag("--steps", c->steps,
                 "The paper's six steps from the diagram to a configured GPU kernel, each tried, and its tables of "
                 "memory and throughput; of several machines, or --machine all, a row each");
    command.flag("--prove", c->prove,
                 "Of every streamed loop on tensor cores the interval of its order, what no order is faster than, and "
                 "the proof that none is better");
    command.flag("--explain-time", c->explain_time,
                 "The terms of each kernel's predicted time: their seconds and shares, the counts and figures of the "
                 "machine that they are made of, and what is hidden behind them");
    command.pipeline(c->common);
}

}  // namespace napkin::cli
