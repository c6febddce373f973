#include "draw/setting_fragments.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagram/hidden_axes.hpp"
#include "draw/configuration_chart.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/hierarchy_chart.hpp"
#include "draw/machine_steps.hpp"
#include "draw/overlap_chart.hpp"
#include "draw/plot.hpp"
#include "draw/roofline_chart.hpp"
#include "draw/tiles_chart.hpp"
#include "draw/transfers_chart.hpp"
#include "steps/report.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

using svg::Element;

/// A picture whose ids are its own on the page.
Element figure_of(svg::Document document, const std::string& id) {
    document.id = id;
    return html::element("figure", {html::picture(document)});
}

Fragment heading_of(const Figures& f) {
    return {"heading",
            {html::element("h1", fmt::format("{} on {}", f.diagram.name, f.machine.name)),
             html::element("p", f.machine.description, "note")}};
}

Fragment summary_of(const Figures& f) {
    report::Section summary = summary_report(f);
    summary.title = "The setting and its time";
    std::vector<Element> content = html::content(summary);
    content.erase(content.begin());
    return {"summary", std::move(content)};
}

Element no_cost(const Figures& f) { return html::element("p", "No cost: " + f.no_cost.front().message + ".", "note"); }

/// H* against M of every kernel. Letters need no numbers, so that they are there where the choices have no cost.
std::vector<Element> transfers_of(const Figures& f, const std::vector<KernelFigures>& kernels) {
    std::vector<Element> out;
    for (const KernelFigures& k : kernels)
        out.push_back(figure_of(transfers_chart(f.derived, k, f.extents, f.memory_values, f.diagram.name),
                                fmt::format("transfers-{}", out.size())));
    return out;
}

Fragment numbers_of_setting(const Figures& f, const std::vector<KernelFigures>& kernels) {
    Fragment out{"numbers", transfers_of(f, kernels)};
    out.content.insert(out.content.begin(), f.no_cost.empty() ? html::table(counts_table(f, kernels)) : no_cost(f));
    return out;
}

std::vector<Element> plan_content(const Figures& figures) {
    if (!figures.plan) {
        const Diagnostic& why = figures.no_plan.front();
        return {html::element("p", fmt::format("No plan: {}{}.", why.message, why.hint.empty() ? "" : "; " + why.hint),
                              "note")};
    }
    std::vector<Element> out;
    for (const KernelPlan& kernel : figures.plan->kernels) {
        const ScheduledKernel& s = kernel.scheduled;
        const html::KnownNames names = known_names(s.program->diagram);
        append(out, html::content(plan_report(kernel), names));
        const auto number = &kernel - figures.plan->kernels.data();
        out.push_back(html::element("details", {html::element("summary", "The whole schedule"),
                                                html::code_block(to_string(*s.program, *s.kernel, s.schedule), names,
                                                                 fmt::format("plan-{}-line", number), "The schedule")})
                          .set("id", fmt::format("schedule-{}", number)));
    }
    for (const std::string& note : figures.notes) out.push_back(html::element("p", note, "note"));
    return out;
}

/// Tables 1 to 3 of every kernel, and the overlap of its streams.
std::vector<Element> steps_content(const StepReport& report, const html::KnownNames& names) {
    std::vector<Element> out;
    for (const KernelSteps& k : report.kernels) {
        append(out, html::content(tables_report(report, k), names));
        const std::string subject = fmt::format("{} on {}", report.diagram, report.machine);
        const std::string id = fmt::format("kernel-{}", &k - report.kernels.data());
        out.push_back(figure_of(configuration_chart(k, subject), id + "-configuration"));
        for (const StreamChart& s : k.charts)
            out.push_back(figure_of(overlap_chart(s, report.axes[at(s.stream)], subject),
                                    fmt::format("{}-overlap-{}", id, s.stream)));
    }
    return out;
}

Fragment steps_of_setting(const Figures& f) {
    Fragment out{"steps", {}};
    if (!f.steps) {
        for (const Diagnostic& d : f.no_steps)
            out.content.push_back(html::element("p", "No configuration: " + d.message + ".", "note"));
        return out;
    }
    out.content = steps_content(*f.steps, known_names(f.diagram));
    const std::string of = f.steps->expected_s
                               ? "What the plan's kernels have."
                               : "What the paper's hierarchy has, and not of a kernel: " + f.steps->no_plan + ".";
    out.content.insert(out.content.begin(), html::element("p", of, "note"));
    return out;
}

Fragment tiles_of_setting(const Figures& f) {
    Fragment out{"tiles", {}};
    if (!f.no_cost.empty()) return {"tiles", {no_cost(f)}};
    for (std::size_t k = 0; k < f.derived.kernels.size(); ++k)
        out.content.push_back(
            figure_of(tiles_chart(f.derived, f.derived.kernels[k], f.extents, tiles_of(f.kernels[k], f.extents),
                                  fmt::format("{} on {}", f.diagram.name, f.machine.name)),
                      fmt::format("tiles-{}", k)));
    return out;
}

}  // namespace

html::KnownNames known_names(const Diagram& diagram) {
    html::KnownNames out;
    for (const AxisId axis : axes_of_text(diagram)) out.axes.push_back(diagram.axis(axis).name);
    for (const Array& array : diagram.arrays) out.arrays.push_back(array.name);
    return out;
}

std::vector<Fragment> setting_fragments(const Figures& f, const std::vector<KernelFigures>& costs) {
    return {heading_of(f),
            summary_of(f),
            numbers_of_setting(f, costs),
            {"plan-content", plan_content(f)},
            steps_of_setting(f),
            {"roofline", {figure_of(roofline_chart(f.machine, f.kernels, {}, f.diagram.name), "roofline-chart")}},
            tiles_of_setting(f),
            {"machine-chart", {figure_of(hierarchy_chart(f.machine), "hierarchy")}}};
}

Fragment step_pictures(const Figures& f, std::size_t room) {
    Fragment out{"step-pictures", {}};
    if (!f.steps) return out;
    const std::string memory = f.machine.levels.empty() ? "memory" : f.machine.levels.front().name;
    std::vector<std::string> names = machine_step_names();
    names.insert(names.begin(), "pseudocode expansion");
    for (const std::string& name : names) {
        Drawing drawing = machine_step_drawing(*f.steps, memory, name);
        drawing.title = fmt::format("{}, {}", f.diagram.name, name);
        const std::string id = fmt::format("picture-of-step-{}", out.content.size() + 1);
        Element picture = figure_of(to_svg(picture_of(drawing, {.page_height = document_height})), id);
        const std::size_t bytes = html::to_text(picture).size();
        const bool has_room = bytes <= room || name == names.back();
        room -= std::min(room, bytes);
        if (!has_room) picture = html::element("p", "Not drawn here: napkin draw --step " + name + ".", "note");
        Element step = html::element(
            "details", {html::element("summary", fmt::format("{}. {}", out.content.size() + 1, name)), std::move(picture)});
        step.set("id", "open-" + id);
        if (name == names.back()) step.set("open", "");
        out.content.push_back(std::move(step));
    }
    return out;
}

namespace {

void add_fragment(nlohmann::ordered_json& answer, const Fragment& fragment) {
    std::string text;
    for (const Element& e : fragment.content) text += html::to_text(e);
    answer["fragments"][fragment.id] = std::move(text);
}

}  // namespace

nlohmann::ordered_json answer_of(const Figures& figures) {
    nlohmann::ordered_json out;
    const std::vector<KernelFigures> costs = costs_of(figures);
    out["figures"] = figures_json(figures, costs);
    for (const Fragment& fragment : setting_fragments(figures, costs)) add_fragment(out, fragment);
    return out;
}

std::string answer_text(const nlohmann::ordered_json& answer) {
    return answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string errors_answer(const std::vector<Diagnostic>& errors) {
    nlohmann::ordered_json out;
    for (const Diagnostic& d : errors) out["errors"].push_back(d.hint.empty() ? d.message : d.message + "; " + d.hint);
    return answer_text(out);
}

std::string answer(const std::string& request_text) {
    const auto request = read_request(request_text);
    if (!request) return errors_answer(request.errors());
    const auto figures = figures_for(*request);
    if (!figures) return errors_answer(figures.errors());
    nlohmann::ordered_json out = answer_of(*figures);
    add_fragment(out, step_pictures(*figures));
    return answer_text(out);
}

}  // namespace napkin::draw
