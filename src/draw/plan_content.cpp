#include "draw/plan_content.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include "draw/setting_fragments.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/overrides.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

using html::cell;
using html::element;
using svg::Element;

/// The charts of a plan know one order of issue, that of one stream.
std::ptrdiff_t num_streams(const TileKernel& kernel) {
    return count_if(kernel.body, [](const TileStatement& s) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        return loop && !(*loop)->is_sub;
    });
}

/// "group", "stream": the choices of a kind with their reasons.
void add_choices(std::vector<std::vector<Element>>& rows, const Diagram& diagram, const std::string& kind,
                 const std::map<AxisId, Choice>& choices) {
    for (const auto& [axis, choice] : choices)
        rows.push_back({element("span", {html::text(kind + " "),
                                         element("span", diagram.axis(axis).name).data("axis", diagram.axis(axis).name)}),
                        cell(std::to_string(choice.value)), cell(choice.by_user ? "override" : "chosen"),
                        cell(choice.reason)});
}

/// The plan of the setting, with its schedule's file or without it.
Result<Plan> plan_of(const Setting& setting, const std::shared_ptr<const Source>& schedule) {
    // What is wrong in the file is said where the plan reads it.
    const auto items = all_overrides(setting.derived, {}, schedule);
    const Derived form = choose_form_by_plans(setting.derived, setting.extents, setting.machine,
                                              items ? *items : std::vector<ScheduleItem>{});
    PlanOptions options;
    options.file = schedule;
    return choose_plan(form, setting.extents, setting.machine, {}, options);
}

}  // namespace

std::vector<Element> plan_content(const Plan& plan, const Machine& machine, const std::vector<std::string>& notes) {
    std::vector<Element> out;
    for (const KernelPlan& kernel : plan.kernels) {
        const ScheduledKernel& s = kernel.scheduled;
        const Diagram& diagram = s.program->diagram;
        out.push_back(element("h3", fmt::format("Kernel {}", s.schedule.kernel)));
        std::vector<std::vector<Element>> rows;
        add_choices(rows, diagram, "group", s.schedule.group);
        add_choices(rows, diagram, "stream", s.schedule.stream);
        add_choices(rows, diagram, "subloop", s.schedule.subloop);
        rows.push_back({cell("threads"), cell(std::to_string(s.schedule.threads.value)),
                        cell(s.schedule.threads.by_user ? "override" : "chosen"), cell(s.schedule.threads.reason)});
        out.push_back(html::table("Choices and their reasons", {"choice", "value", "by", "reason"}, rows, {1}));
        out.push_back(element("p", fmt::format("Predicted {}, bound by {}; H = {} values, M = {} values a core.",
                                               seconds_text(kernel.time.seconds), kernel.time.busy.front().what,
                                               count_text(kernel.time.transfers), count_text(kernel.memory_values))));
        const auto number = &kernel - plan.kernels.data();
        out.push_back(element("details", {element("summary", "The whole schedule"),
                                          html::code_block(to_string(*s.program, *s.kernel, s.schedule), known_names(diagram),
                                                           fmt::format("plan-{}-line", number), "The schedule")})
                          .set("id", fmt::format("schedule-{}", number)));
    }
    for (const std::string& note : notes) out.push_back(element("p", note, "note"));
    const bool is_charted = all_of(plan.kernels,
                                   [](const KernelPlan& k) { return num_streams(*k.scheduled.kernel) <= 1; });
    if (machine.kind == MachineKind::gpu && is_charted) {
        Element of_plan = element("details",
                                  {element("summary", "Configuration, throughput and overlap of this plan")});
        of_plan.set("id", "plan-steps");
        for (Element& e : steps_content(placed_steps(plan, machine), "planned-")) of_plan.add(std::move(e));
        out.push_back(std::move(of_plan));
    }
    return out;
}

std::string not_a_kernels_schedule(std::string_view why) {
    return fmt::format("All of this plan is the model's own choice, as the schedule's file is not a kernel's: {}.", why);
}

Result<SettingPlan> plan_for(const FiguresRequest& request) {
    auto setting = setting_of(request);
    if (!setting) return setting.errors();
    SettingPlan out;
    auto plan = plan_of(*setting, setting->schedule);
    if (!plan && setting->schedule) {
        out.notes.push_back(not_a_kernels_schedule(plan.errors().front().message));
        plan = plan_of(*setting, nullptr);
    }
    if (!plan) return plan.errors();
    out.machine = std::move(setting->machine);
    out.plan = std::move(plan).value();
    return out;
}

std::string plan_answer(const std::string& request_text) {
    const auto request = read_request(request_text);
    if (!request) return errors_answer(request.errors());
    const auto made = plan_for(*request);
    if (!made) return errors_answer(made.errors());
    nlohmann::ordered_json out;
    for (const KernelPlan& kernel : made->plan.kernels) {
        const ScheduledKernel& s = kernel.scheduled;
        out["figures"]["kernels"].push_back({{"name", s.schedule.kernel},
                                             {"seconds", kernel.time.seconds},
                                             {"transfers_values", kernel.time.transfers},
                                             {"memory_values", kernel.memory_values},
                                             {"schedule", to_string(*s.program, *s.kernel, s.schedule)}});
    }
    std::string text;
    for (const Element& e : plan_content(made->plan, made->machine, made->notes)) text += html::to_text(e);
    out["fragments"]["plan-content"] = std::move(text);
    return answer_text(out);
}

}  // namespace napkin::draw
