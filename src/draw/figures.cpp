#include "draw/figures.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include "derive/derive.hpp"
#include "diagram/empty_axes.hpp"
#include "diagram/hidden_axes.hpp"
#include "draw/plot.hpp"
#include "machine/builtin.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/overrides.hpp"
#include "steps/report.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"

namespace napkin::draw {
namespace {

Result<Machine> machine_of(const FiguresRequest& request) {
    if (!request.machine_text.empty())
        return read_machine(std::make_shared<Source>(Source{request.machine, request.machine_text}));
    std::vector<std::string> names;
    for (const EmbeddedText& text : builtin_machine_texts()) {
        if (text.name == request.machine)
            return read_machine(std::make_shared<Source>(Source{request.machine, std::string(text.text)}));
        names.emplace_back(text.name);
    }
    return Diagnostic{.code = "unknown-machine",
                      .range = {},
                      .message = fmt::format("there is no machine '{}'", request.machine),
                      .expected = "one of " + join(names, ", "),
                      .hint = did_you_mean(request.machine, names),
                      .notes = {}};
}

/// The text's diagram with the request's sizes. Errors: those of the text; unknown-axis, bad-size and the like.
Result<Diagram> diagram_of(const FiguresRequest& request) {
    std::vector<std::string> items = request.items;
    const auto add = [&](const char* kind, const std::map<std::string, std::int64_t>& sizes) {
        for (const auto& [axis, size] : sizes) items.push_back(fmt::format("{} {} = {}", kind, axis, size));
    };
    add("group", request.group), add("stream", request.stream), add("warpgroup", request.warpgroup);
    auto parsed = parse_diagram(std::make_shared<Source>(Source{request.file, request.text}), {request.diagram, items});
    if (!parsed) return parsed;
    if (const auto bound = bind_sizes(*parsed, request.sizes); !bound) return bound.errors();
    Diagram diagram = std::move(parsed).value();
    for (Axis& axis : diagram.axes)
        if (const auto size = request.sizes.find(axis.name); size != request.sizes.end())
            axis.size = Size(size->second);
    return without_empty_axes(std::move(diagram));
}

/// Everything by hand, with the request's own sizes in place of others.
Result<std::vector<ScheduleItem>> items_of(const FiguresRequest& request, const Derived& derived,
                                           const std::shared_ptr<const Source>& schedule) {
    auto items = all_overrides(derived, {}, schedule);
    if (!items) return items;
    const auto replace = [&](ChoiceKind kind, const std::map<std::string, std::int64_t>& sizes) {
        for (const auto& [axis, size] : sizes) {
            std::erase_if(*items, [&, axis = axis](const ScheduleItem& i) { return i.kind == kind && i.axis == axis; });
            ScheduleItem item{.kind = kind, .axis = axis, .value = size};
            items->push_back(std::move(item));
        }
    };
    replace(ChoiceKind::group, request.group), replace(ChoiceKind::stream, request.stream),
        replace(ChoiceKind::warpgroup, request.warpgroup);
    return items;
}

/// The plan without the schedule's file, which is none of a kernel's.
std::optional<ChosenPlan> planned_without_schedule(const FiguresRequest& request, const Setting& setting,
                                                   const SettingPlanner& planner) {
    FiguresRequest request_without = request;
    Setting setting_without = setting;
    request_without.schedule.clear(), setting_without.schedule = nullptr;
    auto plan = planner(request_without, setting_without);
    return plan ? std::optional(std::move(plan).value()) : std::nullopt;
}

/// What the kernels of the plan cost, which is of the form `chosen`; null: there is no plan.
void add_costs(const Setting& setting, const Plan* plan, const Derived& chosen,
               const std::shared_ptr<const Source>& file, Figures& out) {
    const MachineCostOptions by_hand = costs_by_hand(chosen.diagram);
    auto costs = plan ? planned_costs(chosen, setting.extents, setting.machine, *plan, by_hand, file)
                      : closed_form_costs(chosen, setting.extents, setting.machine, by_hand, file);
    if (!costs) {
        out.no_cost = costs.errors();
        out.derived = chosen, out.extents = setting.extents;
        return;
    }
    out.derived = std::move(costs->cut.form), out.extents = std::move(costs->cut.extents);
    out.tiles = std::move(costs->tiles), out.kernels = std::move(costs->kernels);
    // An estimate is no time to expect.
    if (!plan)
        for (KernelOnMachine& kernel : out.kernels) kernel.seconds = 0;
}

}  // namespace

std::optional<double> Figures::seconds() const { return plan ? std::optional(plan->seconds()) : std::nullopt; }

double Figures::bound_s() const { return sum<double>(kernels, &KernelOnMachine::bound_s); }

std::string Figures::bound_by() const {
    const auto longest = max_element(kernels, [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    return longest == kernels.end() || !plan ? "" : longest->bound_by;
}

CostNumbers Figures::numbers() const {
    CostNumbers out;
    out.extents = extents;
    for (const KernelOnMachine& kernel : kernels) out.sizes.push_back(tiles_of(kernel, extents));
    out.memory_values = memory_values;
    out.machine = &machine;
    out.on_machine = &kernels;
    return out;
}

Result<Setting> setting_of(const FiguresRequest& request) {
    Setting out;
    auto machine = machine_of(request);
    if (!machine) return machine.errors();
    out.machine = std::move(machine).value();
    auto diagram = diagram_of(request);
    if (!diagram) return diagram.errors();
    out.diagram = std::move(diagram).value();
    DeriveOptions derive_options;
    derive_options.fuse = request.fuse;
    auto derived = derive(out.diagram, derive_options);
    if (!derived) return derived.errors();
    out.derived = std::move(derived).value();
    auto extents = bind_sizes(out.diagram);
    if (!extents) return extents.errors();
    out.extents = std::move(extents).value();
    if (!request.schedule.empty()) out.schedule = std::make_shared<Source>(Source{"schedule", request.schedule});
    return out;
}

Result<ChosenPlan> plan_by_model(const FiguresRequest& /*request*/, const Setting& setting) {
    // What is wrong in the file is said where the plan reads it.
    const auto items = all_overrides(setting.derived, {}, setting.schedule);
    ChosenPlan out;
    out.derived = choose_form(setting.derived, setting.extents, setting.machine,
                              items ? *items : std::vector<ScheduleItem>{});
    PlanOptions options;
    options.file = setting.schedule;
    auto plan = choose_plan(out.derived, setting.extents, setting.machine, {}, options);
    if (!plan) return plan.errors();
    out.plan = std::move(plan).value();
    return out;
}

Result<Figures> figures_for(const FiguresRequest& request, const SettingPlanner& planner) {
    auto setting = setting_of(request);
    if (!setting) return setting.errors();
    const auto items = items_of(request, setting->derived, setting->schedule);
    if (!items) return items.errors();
    Figures out;
    out.machine = setting->machine, out.diagram = setting->diagram;
    out.memory_values = values_a_core(out.diagram, out.machine);
    const auto of_setting = planner(request, *setting);
    std::optional<ChosenPlan> plan;
    if (of_setting)
        plan = *of_setting;
    else if (setting->schedule)
        plan = planned_without_schedule(request, *setting, planner);
    const Derived form = of_setting ? plan->derived
                                    : choose_form(setting->derived, setting->extents, out.machine, *items, nullptr,
                                                  FormTimes::of_closed_form);
    add_costs(*setting, plan ? &plan->plan : nullptr, plan ? plan->derived : form,
              plan && !of_setting ? nullptr : setting->schedule, out);
    auto steps = steps_for(form, setting->extents, out.machine, *items,
                           of_setting ? Result<Plan>(plan->plan) : Result<Plan>(of_setting.errors()), StepTexts::left_out);
    if (steps)
        out.steps = std::move(steps).value();
    else
        out.no_steps = steps.errors();
    if (plan) {
        if (!of_setting)
            out.notes.push_back(
                fmt::format("All of this plan is the model's own choice, as the schedule's file is not a kernel's: {}.",
                            of_setting.errors().front().message));
        append(out.notes, plan->notes);
        out.plan = std::move(plan->plan);
    } else {
        out.no_plan = of_setting.errors();
    }
    if (!out.no_cost.empty() && !out.steps) return out.no_cost;
    return out;
}

std::vector<KernelFigures> costs_of(const Figures& f) {
    std::optional<CostNumbers> numbers;
    if (f.no_cost.empty()) numbers = f.numbers();
    // What is asked of the machine, and searched for at what its cores hold, is shown nowhere here.
    if (numbers) numbers->machine = nullptr, numbers->on_machine = nullptr, numbers->memory_values.reset();
    return cost_figures(f.derived, numbers, f.tiles);
}

std::string sizes_text(const Figures& f) {
    return join(
        mapped<std::string>(axes_of_text(f.diagram),
                            [&](AxisId a) { return fmt::format("{} = {}", f.diagram.axes[a].name, f.extents[a]); }),
        ", ");
}

report::Section summary_report(const Figures& f) {
    report::Json sizes = report::Json::object();
    for (const AxisId a : axes_of_text(f.diagram)) sizes[f.diagram.axes[a].name] = f.extents[a];
    const double seconds = f.seconds().value_or(0), flops = sum<double>(f.kernels, &KernelOnMachine::flops);
    report::Section out;
    out.rows({{"schema", "", report::data("napkin.figures/2")},
              {"diagram", "", report::data(f.diagram.name)},
              {"machine", "machine", report::words(f.machine.name)},
              {"sizes", "sizes", {sizes, sizes_text(f)}},
              {"seconds", "expected time, of the plan",
               f.plan ? report::seconds(seconds) : report::shown("no plan: " + f.no_plan.front().message)},
              {"bound_by", "bound by", f.plan ? report::words(f.bound_by()) : report::shown("")},
              {"bound_s", "bound: no schedule is faster",
               f.no_cost.empty() ? report::seconds(f.bound_s()) : report::shown(f.no_cost.front().message)},
              {"", "rate", report::shown(seconds > 0 ? quantity_text(flops / seconds, "FLOP/s") : "")}});
    return out;
}

report::Table counts_table(const Figures& f, const std::vector<KernelFigures>& costs) {
    using Of = const KernelFigures&;
    const auto on = [&](Of k) -> const KernelOnMachine& { return f.kernels[k.kernel]; };
    const auto sizes = [&](Of k) {
        std::vector<std::string> out;
        for (const auto& [letter, of] : {std::pair{'g', &on(k).group}, {'s', &on(k).stream}})
            for (const auto& [axis, size] : *of)
                out.push_back(fmt::format("{}_{} = {}", letter, f.derived.diagram.axis(axis).name, size));
        return report::shown(join(out, ", "));
    };
    const auto counted = [](Of k, const auto& of) { return k.counts ? report::count(of(*k.counts)) : report::shown(""); };
    return report::table_of<KernelFigures>(
        "cost",
        f.plan ? "The same in numbers, at the sizes of the plan"
               : "The same in numbers; no plan says the sizes, and a closed form does",
        costs,
        {{"name", "kernel", [](Of k) { return report::words(k.cost.kernel); }},
         {"", "sizes", sizes},
         {"groups", "groups", [&](Of k) { return report::count(on(k).num_groups); }},
         {"transfers_values", "H, values", [&](Of k) { return counted(k, [](auto& c) { return c.transfers(); }); }},
         {"memory_values", "M, values", [&](Of k) { return counted(k, [](auto& c) { return c.peak_memory; }); }},
         {"transfers_bytes", "through memory", [&](Of k) { return report::bytes(on(k).memory_transfers_bytes()); }},
         {"", "expected", [&](Of k) { return f.plan ? report::seconds(on(k).seconds) : report::shown(); }},
         {"bound_s", "bound", [&](Of k) { return report::seconds(on(k).bound_s); }},
         {"", "bound by", [&](Of k) { return report::shown(f.plan ? on(k).bound_by : "–"); }},
         {"flops", "", [&](Of k) { return report::data(on(k).flops); }}});
}

report::Section plan_report(const KernelPlan& kernel) {
    const ScheduledKernel& s = kernel.scheduled;
    report::Section out{"plan/kernels/[]", fmt::format("Kernel {}", s.schedule.kernel), 0, {}};
    report::Table choices{"", "Choices and their reasons", {{"", "choice"}, {"", "value"}, {"", "by"}, {"", "reason"}}, {}};
    const auto add = [&](const std::string& what, const auto& choice) {
        choices.rows.push_back({report::shown(what), report::whole(choice.value),
                                report::shown(choice.by_user ? "override" : "chosen"), report::shown(choice.reason)});
    };
    for (const auto& [kind, of] :
         {std::pair{"group", &s.schedule.group}, {"stream", &s.schedule.stream}, {"subloop", &s.schedule.subloop}})
        for (const auto& [axis, choice] : *of)
            add(fmt::format("{} {}", kind, s.program->diagram.axis(axis).name), choice);
    add("threads", s.schedule.threads);
    out.data("name", s.schedule.kernel);
    out.table(std::move(choices));
    out.line({{"seconds", "Expected", report::seconds(kernel.time.seconds)},
              {"", "bound by", report::shown(kernel.time.bound_by())},
              {"transfers_values", "H =", {kernel.time.transfers, count_text(kernel.time.transfers) + " values"}},
              {"memory_values", "M =", {kernel.memory_values, count_text(kernel.memory_values) + " values a core"}},
              {"schedule", "", report::data(to_string(*s.program, *s.kernel, s.schedule))}});
    return out;
}

nlohmann::ordered_json figures_json(const Figures& f, const std::vector<KernelFigures>& costs) {
    report::Section out = summary_report(f);
    if (f.no_cost.empty()) out.table(counts_table(f, costs));
    if (f.plan)
        for (const KernelPlan& kernel : f.plan->kernels) out.add(plan_report(kernel));
    for (const auto& [path, why] :
         {std::pair{"no_plan/[]", &f.no_plan}, {"no_cost/[]", &f.no_cost}, {"no_steps/[]", &f.no_steps}})
        for (const Diagnostic& d : *why) out.data(path, {{"code", d.code}, {"message", d.message}});
    if (f.steps) {
        report::Json steps = to_json(report_of(*f.steps));
        for (report::Json& kernel : steps["kernels"]) kernel.erase("steps");
        out.data("kernels", std::move(steps["kernels"]));
    }
    return to_json(out);
}

nlohmann::ordered_json request_json(const FiguresRequest& r) {
    return {{"text", r.text},
            {"file", r.file},
            {"diagram", r.diagram},
            {"machine", r.machine},
            {"machine_text", r.machine_text},
            {"schedule", r.schedule},
            {"items", r.items},
            {"sizes", r.sizes},
            {"group", r.group},
            {"stream", r.stream},
            {"warpgroup", r.warpgroup},
            {"fuse", r.fuse}};
}

Result<FiguresRequest> read_request(const std::string& text) {
    const auto bad = [](const std::string& what) {
        return Diagnostic{
            .code = "bad-request", .range = {}, .message = what, .expected = "what request_json makes", .hint = "", .notes = {}};
    };
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return bad("the request is no JSON object");
    FiguresRequest out;
    std::string key;
    const auto take = [&](const char* name, auto& into) {
        key = name;
        if (const auto found = json.find(name); found != json.end()) found->get_to(into);
    };
    try {
        take("text", out.text), take("file", out.file), take("diagram", out.diagram), take("machine", out.machine);
        take("machine_text", out.machine_text), take("schedule", out.schedule), take("items", out.items);
        take("sizes", out.sizes), take("group", out.group), take("stream", out.stream), take("warpgroup", out.warpgroup);
        take("fuse", out.fuse);
    } catch (const nlohmann::json::exception&) {
        return bad(fmt::format("the request's '{}' is of another kind", key));
    }
    return out;
}

}  // namespace napkin::draw
