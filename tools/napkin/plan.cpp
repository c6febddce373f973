// `napkin plan`: every size and choice for one machine, with its reason.
#include <fmt/format.h>

#include "napkin/command.hpp"
#include "napkin/cost_compare.hpp"
#include "napkin/step_report.hpp"
#include "plan/explain.hpp"
#include "plan/misses.hpp"
#include "plan/overrides.hpp"
#include "plan/prove.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "steps/choices.hpp"
#include "steps/report.hpp"
#include "support/ids.hpp"

namespace napkin::cli {

namespace {

Json choice_json(const Choice& choice) {
    return {{"value", choice.value}, {"reason", choice.reason}, {"by_hand", choice.by_user}};
}

Json choices_json(const Diagram& diagram, const std::map<AxisId, Choice>& choices) {
    Json object = Json::object();
    for (const auto& [axis, choice] : choices) object[diagram.axis(axis).name] = choice_json(choice);
    return object;
}

Json plan_json(const Compilation& compilation) {
    Json document = json_document("plan");
    document["diagram"] = compilation.diagram.name;
    document["machine"] = compilation.plan.machine;
    document["kernels"] = Json::array();
    for (const KernelPlan& kernel : compilation.plan.kernels) {
        Json entry;
        const ScheduledKernel& s = kernel.scheduled;
        const Diagram& diagram = s.program->diagram;
        entry["name"] = s.schedule.kernel;
        entry["group"] = choices_json(diagram, s.schedule.group);
        entry["stream"] = choices_json(diagram, s.schedule.stream);
        entry["subloop"] = choices_json(diagram, s.schedule.subloop);
        if (s.kernel->parts.any())
            entry["split"][diagram.axis(s.kernel->parts.axis).name] = choice_json(s.schedule.split);
        entry["threads"] = choice_json(s.schedule.threads);
        entry["vector_axis"] = {{"value", s.schedule.vector_axis < 0 ? "" : diagram.axis(s.schedule.vector_axis).name},
                                {"reason", s.schedule.vector_axis.reason}};
        entry["panel_vectors"] = s.schedule.panel_vectors.value;
        entry["schedule"] = to_string(*s.program, *s.kernel, s.schedule);
        entry["arena"] = {{"bytes", s.arena_bytes()}, {"tile_bytes", s.held_values * s.value_bytes()}};
        if (s.on_tensor_cores())
            entry["registers"] = {{"tiles", most_registers(s)},
                                  {"available", s.unit.registers},
                                  {"spilled", spilled_registers(s)},
                                  {"spills", spilled_registers(s) > 0}};
        Json traffic = Json::array(), busy = Json::array();
        for (const Busy& b : kernel.time.busy) busy.push_back({{"what", b.what}, {"seconds", b.seconds}});
        for (const Traffic& t : kernel.time.traffic)
            traffic.push_back({{"path", t.path}, {"loaded_bytes", t.loaded_bytes}, {"stored_bytes", t.stored_bytes}});
        entry["predicted"] = {{"transfers_values", kernel.time.transfers},
                              {"memory_values", kernel.memory_values},
                              {"seconds", kernel.time.seconds},
                              {"traffic", traffic},
                              {"bound_by", kernel.time.bound_by()},
                              {"busy", std::move(busy)}};
        entry["misses"] = Json::array();
        for (const Miss& miss : misses(kernel))
            entry["misses"].push_back({{"what", miss.what}, {"why", miss.why}, {"change", miss.change}});
        document["kernels"].push_back(std::move(entry));
    }
    return document;
}

Json terms_json(const ExplainedTime& time) {
    Json terms = Json::array();
    for (const TimeTerm& t : time.terms) {
        Json hidden = Json::array();
        for (const HiddenTime& h : t.hidden)
            hidden.push_back({{"name", h.name},
                              {"seconds", h.seconds},
                              {"slack_seconds", h.slack},
                              {"behind", h.behind},
                              {"made_of", h.made_of}});
        terms.push_back({{"name", t.name},
                         {"seconds", t.seconds},
                         {"share", t.seconds / time.seconds},
                         {"made_of", t.made_of},
                         {"hidden", std::move(hidden)}});
    }
    return terms;
}

Json order_json(const LoopBody& loop, const ProvenOrder& o) {
    Json statements = Json::array();
    for (const int s : o.order.sequence)
        statements.push_back({{"statement", loop.body.operations[at(s)].name}, {"ahead", o.order.ahead[at(s)]}});
    return {{"interval_clocks", o.interval},
            {"pace_clocks", o.pace},
            {"registers", o.registers},
            {"order", std::move(statements)}};
}

Json proof_json(const LoopProof& p) {
    Json out{{"kernel", p.kernel}, {"axis", p.axis}, {"chunk", p.chunk}};
    if (!p.refusal.empty()) {
        out["one_order"] = p.refusal;
        return out;
    }
    const ModuloBounds& b = p.search.bounds;
    out["warpgroups"] = p.warpgroups, out["turns"] = p.is_ping_pong;
    for (const ModuloOperation& o : p.loop.body.operations)
        out["statements"].push_back({{"name", o.name},
                                     {"own_clocks", o.own},
                                     {"matrix_clocks", o.unit},
                                     {"latency_clocks", o.latency},
                                     {"latency_beside_clocks", o.latency_beside}});
    for (const UnitBound& u : p.units)
        out["interval_bounds"].push_back({{"unit", u.unit}, {"clocks", u.clocks}, {"of", u.of}});
    out["pace_bounds"] = {{"issue", b.issue},
                          {"matrix", b.unit},
                          {"recurrence", {{"clocks", b.recurrence}, {"cycle", cycle_text(p)}}},
                          {"stages", {{"clocks", b.stages}, {"of", b.copy < 0 ? "" : p.loop.body.copies[at(b.copy)].name}}},
                          {"measured", b.measured}};
    out["least_interval_clocks"] = p.least_interval;
    out["scheduled"] = order_json(p.loop, p.scheduled), out["best"] = order_json(p.loop, p.best);
    if (p.has_runner_up) out["runner_up"] = order_json(p.loop, p.runner_up);
    out["kernel_registers"] = p.kernel_registers;
    out["proof"] = {{"is_proven", p.search.is_proven()},
                    {"is_exhaustive", p.search.is_exhaustive},
                    {"timed", p.search.looked_at},
                    {"left", p.search.cut},
                    {"over_registers", p.search.over_registers},
                    {"is_scheduled_best", p.is_scheduled_best()},
                    {"text", proof_text(p)}};
    return out;
}

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

ExitCode plan(const PlanCommand& command) {
    const Options& options = command.common;
    const auto compilation = compile(options, Pass::plan);
    if (!compilation) return fail(compilation.errors(), options);
    if (const Status s = check_readings(options, *compilation); !s) return fail(s.errors(), options);
    Json document;
    std::string text;
    if (options.json)
        document = plan_json(*compilation);
    else
        text = to_string(compilation->plan);
    if (command.explain_time) {
        const std::vector<ExplainedTime> times = explained_times(compilation->derived, compilation->extents,
                                                                 compilation->machine, compilation->plan);
        if (!options.json) text += to_string(times);
        for (std::size_t k = 0; k < times.size() && options.json; ++k)
            document["kernels"][k]["predicted"]["terms"] = terms_json(times[k]);
    }
    if (command.prove) {
        const auto proofs = prove_orders(compilation->derived, compilation->extents, compilation->machine,
                                         compilation->plan);
        if (!proofs) return fail(proofs.errors(), options);
        if (!options.json) text += to_string(*proofs);
        for (const LoopProof& p : *proofs)
            if (options.json) document["proofs"].push_back(proof_json(p));
    }
    options.json ? print(document) : print(text);
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
