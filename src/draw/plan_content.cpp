#include "draw/plan_content.hpp"

#include <fmt/format.h>

#include "draw/setting_fragments.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

using html::cell;
using html::element;
using svg::Element;

/// "group", "stream": the choices of a kind with their reasons.
void add_choices(std::vector<std::vector<Element>>& rows, const Diagram& diagram, const std::string& kind,
                 const std::map<AxisId, Choice>& choices) {
    for (const auto& [axis, choice] : choices)
        rows.push_back({element("span", {html::text(kind + " "),
                                         element("span", diagram.axis(axis).name).data("axis", diagram.axis(axis).name)}),
                        cell(std::to_string(choice.value)), cell(choice.by_user ? "override" : "chosen"),
                        cell(choice.reason)});
}

}  // namespace

std::vector<Element> plan_content(const Figures& figures) {
    if (!figures.plan) {
        const Diagnostic& why = figures.no_plan.front();
        return {
            element("p", fmt::format("No plan: {}{}.", why.message, why.hint.empty() ? "" : "; " + why.hint), "note")};
    }
    std::vector<Element> out;
    for (const KernelPlan& kernel : figures.plan->kernels) {
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
        out.push_back(element("p", fmt::format("Expected {}, bound by {}; H = {} values, M = {} values a core.",
                                               seconds_text(kernel.time.seconds), kernel.time.bound_by(),
                                               count_text(kernel.time.transfers), count_text(kernel.memory_values))));
        const auto number = &kernel - figures.plan->kernels.data();
        out.push_back(element("details", {element("summary", "The whole schedule"),
                                          html::code_block(to_string(*s.program, *s.kernel, s.schedule), known_names(diagram),
                                                           fmt::format("plan-{}-line", number), "The schedule")})
                          .set("id", fmt::format("schedule-{}", number)));
    }
    for (const std::string& note : figures.notes) out.push_back(element("p", note, "note"));
    return out;
}

}  // namespace napkin::draw
