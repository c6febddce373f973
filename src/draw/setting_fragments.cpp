#include "draw/setting_fragments.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagram/flat_axes.hpp"
#include "draw/configuration_chart.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/hierarchy_chart.hpp"
#include "draw/machine_steps.hpp"
#include "draw/overlap_chart.hpp"
#include "draw/plan_content.hpp"
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

using html::cell;
using svg::Element;

/// Whole numbers whole.
std::string plain_number(double value) {
    return value == std::floor(value) && std::abs(value) < 1e12 ? fmt::format("{:.0f}", value)
                                                                : fmt::format("{:.4g}", value);
}

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
    double flops = 0;
    for (const KernelOnMachine& k : f.kernels) flops += k.flops;
    const std::optional<double> seconds = f.seconds();
    std::vector<std::vector<Element>> rows;
    const auto row = [&](const char* what, const std::string& value) { rows.push_back({cell(what), cell(value)}); };
    row("machine", f.machine.name);
    row("sizes", sizes_text(f));
    row("expected time, of the plan", seconds ? seconds_text(*seconds) : "no plan: " + f.no_plan.front().message);
    if (seconds) row("bound by", f.bound_by());
    row("bound: no schedule is faster", f.no_cost.empty() ? seconds_text(f.bound_s()) : f.no_cost.front().message);
    if (seconds && *seconds > 0) row("rate", quantity_text(flops / *seconds, "FLOP/s"));
    return {"summary", {html::table("The setting and its time", {"figure", "value"}, rows)}};
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
    Fragment out{"numbers", {}};
    if (!f.no_cost.empty()) {
        out.content = transfers_of(f, kernels);
        out.content.insert(out.content.begin(), no_cost(f));
        return out;
    }
    std::vector<std::vector<Element>> rows;
    for (const KernelFigures& k : kernels) {
        const KernelOnMachine& on = f.kernels[k.kernel];
        std::vector<std::string> sizes;
        for (const auto& [axis, size] : on.group)
            sizes.push_back(fmt::format("g_{} = {}", f.derived.diagram.axis(axis).name, size));
        for (const auto& [axis, size] : on.stream)
            sizes.push_back(fmt::format("s_{} = {}", f.derived.diagram.axis(axis).name, size));
        rows.push_back({cell(k.cost.kernel), cell(join(sizes, ", ")), cell(plain_number(on.num_groups)),
                        cell(k.counts ? count_text(static_cast<double>(k.counts->transfers())) : ""),
                        cell(k.counts ? count_text(static_cast<double>(k.counts->peak_memory)) : ""),
                        cell(bytes_text(on.memory_transfers_bytes())), cell(f.plan ? seconds_text(on.seconds) : "–"),
                        cell(seconds_text(on.bound_s)), cell(f.plan ? on.bound_by : "–")});
    }
    out.content = transfers_of(f, kernels);
    out.content.insert(out.content.begin(),
                       html::table(f.plan ? "The same in numbers, at the sizes of the plan"
                                          : "The same in numbers; no plan says the sizes, and a closed form does",
                                   {"kernel", "sizes", "groups", "H, values", "M, values", "through memory", "expected",
                                    "bound", "bound by"},
                                   rows, {2, 3, 4, 5, 6, 7}));
    return out;
}

Element configuration_table(const KernelSteps& k) {
    std::vector<std::vector<Element>> rows;
    const auto bytes = [](std::int64_t n, int stages) {
        return n == 0 ? std::string() : stages > 1 ? fmt::format("{} (×{})", n, stages) : std::to_string(n);
    };
    for (const ConfigurationRow& r : k.configuration)
        rows.push_back({html::element("span", row_names(r)).data("array", r.places.front().front()), cell(r.size),
                        cell(name(r.type)),
                        cell(r.at == HeldAt::memory      ? "SMEM"
                             : r.at == HeldAt::fragments ? "registers, fragments"
                                                         : "registers"),
                        cell(bytes(r.block_bytes, r.stages)), cell(bytes(r.warpgroup_bytes, r.stages))});
    for (const LevelBudget& b : k.budgets)
        rows.push_back({cell(b.what), cell(""), cell(""), cell(b.level), cell(plain_number(b.block_bytes)),
                        cell(plain_number(b.warpgroup_bytes))});
    return html::table("Table 1: configuration", {"variable", "size", "precision", "level", "M_TB bytes", "M_WG bytes"},
                       rows, {4, 5});
}

Element budget_table(const KernelSteps& k) {
    std::vector<std::vector<Element>> rows;
    for (const LevelBudget& b : k.budgets)
        rows.push_back({cell(b.level), cell(plain_number(b.capacity_bytes / 1024)),
                        cell(plain_number(b.block_bytes / 1024)), cell(plain_number(b.warpgroup_bytes / 1024)),
                        cell(b.fit_text()), cell(fmt::format("{:.2f}", b.excess_block / 1024)),
                        cell(fmt::format("{:.2f}", b.excess_warpgroup / 1024)),
                        cell(fmt::format("{:.0f} B", b.excess_thread))});
    return html::table(fmt::format("Table 2: budgets, KB, at {} warpgroups", k.num_warpgroups),
                       {"level", "M_max", "M_TB", "M_WG", "N_max", "excess a block", "a warpgroup", "a thread"}, rows,
                       {1, 2, 3, 4, 5, 6, 7});
}

Element throughput_table(const KernelSteps& k) {
    std::vector<std::vector<Element>> rows;
    for (const ThroughputRow& r : k.throughput.rows)
        rows.push_back({html::element("span", r.statement).data("array", r.statement),
                        cell(fmt::format("{} {}", r.unit, name(r.type))), cell(plain_number(r.operations)),
                        cell(plain_number(r.per_clock)), cell(plain_number(r.clocks()))});
    for (const UnitTotal& u : k.throughput.units)
        rows.push_back(
            {cell("all"), cell(u.unit), cell(plain_number(u.operations)), cell(""), cell(plain_number(u.clocks))});
    return html::table("Table 3: throughput, of one row and chunk",
                       {"operation", "unit", "operations", "a clock", "clocks"}, rows, {2, 3, 4});
}

/// Tables 1 to 3 of every kernel, and the overlap of its streams.
std::vector<Element> steps_content(const StepReport& report) {
    std::vector<Element> out;
    for (const KernelSteps& k : report.kernels) {
        std::vector<std::string> sizes;
        for (const CutSize& size : k.sizes)
            sizes.push_back(fmt::format("{} = {}", to_string(size, report.axes), size.size));
        out.push_back(html::element("h3", fmt::format("Kernel {}", k.kernel)));
        out.push_back(html::element(
            "p", fmt::format(
                     "{}{} warpgroup{} of {} threads. No chunk and row takes less than {} clocks{}.",
                     sizes.empty() ? "" : join(sizes, ", ") + "; ", k.num_warpgroups, k.num_warpgroups == 1 ? "" : "s",
                     k.warpgroup_threads, plain_number(k.throughput.lower_bound()),
                     k.throughput.tensor_flop_per_s > 0
                         ? fmt::format(", {} of the machine", quantity_text(k.throughput.tensor_flop_per_s, "FLOP/s"))
                         : "")));
        out.push_back(configuration_table(k));
        out.push_back(budget_table(k));
        out.push_back(throughput_table(k));
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
    out.content = steps_content(*f.steps);
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

std::string sizes_text(const Figures& f) {
    std::vector<std::string> sizes;
    for (const AxisId a : axes_of_text(f.diagram))
        sizes.push_back(fmt::format("{} = {}", f.diagram.axes[a].name, f.extents[a]));
    return join(sizes, ", ");
}

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
