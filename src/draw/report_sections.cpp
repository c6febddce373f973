#include <fmt/format.h>

#include <algorithm>

#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/drawings.hpp"
#include "draw/report_page.hpp"
#include "draw/setting_fragments.hpp"
#include "run/derivation.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"
#include "syntax/print.hpp"

namespace napkin::draw {
namespace {

using html::cell;
using html::element;
using svg::Element;

Element section(std::string_view id, std::string_view heading) {
    Element out = element("section").set("id", id).set("aria-labelledby", fmt::format("{}-heading", id));
    out.add(element("h2", heading).set("id", fmt::format("{}-heading", id)));
    return out;
}

/// Lines with numbers to which links lead, names told apart.
Element code_block(std::string_view code, const html::KnownNames& names, std::string_view prefix, std::string_view label) {
    Element pre = element("pre").set("tabindex", "0").set("aria-label", label);
    int number = 0;
    for (std::size_t begin = 0; begin < code.size();) {
        const std::size_t end = std::min(code.find('\n', begin), code.size());
        Element line = element("span", "", "line").set("id", fmt::format("{}-{}", prefix, ++number));
        for (Element& part : html::with_names(code.substr(begin, end - begin), names)) line.add(std::move(part));
        line.add(html::text(""));
        pre.add(std::move(line));
        pre.children.push_back({"#printed", {}, "\n", {}});
        begin = end + 1;
    }
    return pre;
}

std::vector<Element> named(std::string_view text, const html::KnownNames& names) {
    return html::with_names(text, names);
}

std::string line_of(const SourceRange& range) {
    return range.source ? fmt::format("{}:{}", range.source->name, line_column(*range.source, range.begin).line) : "";
}

/// A diagram at a step of its way, as `napkin draw --step` draws it.
Element diagram_figure(const Subject& subject, const std::string& step) {
    svg::Document document = to_svg(picture_of(drawing_of(subject, step)));
    document.id = "diagram-" + step;
    return element("figure", {html::picture(document)});
}

/// Of long derivations not every step is drawn: a page has three megabytes, of which the derivation's pictures take these.
constexpr std::size_t most_drawn_bytes = 600'000;

/// `room`: bytes that pictures may take still, less by those of this one.
Element step_item(const Subject& subject, std::size_t number, const html::KnownNames& names, std::size_t& room) {
    const Derived& derived = *subject.derived;
    const DerivationStep& step = derived.steps[number - 1];
    Element body = element("details").set("id", fmt::format("step-{}", number)).set("class", "step");
    if (number == 1) body.set("open", "");
    body.add(element("summary", {element("b", fmt::format("{}. {}", number, step.rule)), html::text(" "),
                                 element("span", named(step.effect, names))}));
    if (!step.side_condition.empty())
        body.add(element("p", {element("i", "because "), element("span", named(step.side_condition, names))}));
    if (const std::string where = line_of(step.range); !where.empty()) body.add(element("p", "at " + where, "note"));
    if (const auto* edit = std::get_if<Edit>(&step.change)) {
        Element lines = element("div", "", "edit");
        for (const Edit::Replacement& r : edit->equations) {
            if (!contains(r.after, r.before))
                lines.add(element(
                    "p",
                    {element("span", "− ", "sign"), element("code", named(to_string(derived.diagram, r.before), names))},
                    "gone"));
            for (const Equation& e : r.after)
                if (!(e == r.before))
                    lines.add(element(
                        "p", {element("span", "+ ", "sign"), element("code", named(to_string(derived.diagram, e), names))},
                        "made"));
        }
        body.add(std::move(lines));
    }
    Element picture = diagram_figure(subject, std::to_string(number));
    const std::size_t bytes = html::to_text(picture).size();
    if (bytes > room) {
        body.add(element("p", fmt::format("Not drawn here: napkin draw --step {}.", number), "note"));
        room = 0;
    } else {
        room -= bytes;
        body.add(std::move(picture));
    }
    return element("li", {std::move(body)});
}

void add_formulas(Element& out, const ReportInput& input, const KernelFigures& k) {
    const Diagram& diagram = input.figures.derived.diagram;
    const SymbolNames names = symbol_names(diagram), optimum_names = names_in(k.optimum, diagram);
    Element list = element("dl");
    const auto add = [&](std::string_view what, Element formula) {
        list.add(element("dt", what));
        list.add(element("dd", {std::move(formula)}));
    };
    add("groups", html::math_equation("N_g", k.cost.num_groups, names));
    add("transfers of a launch", html::math_equation("H", k.cost.transfers, names));
    for (const MemoryColumn& column : k.cost.memory)
        add("memory at " + column.at, html::math_equation("M", column.size, names, "≥"));
    if (k.optimum.closed) {
        add("fewest transfers", html::math_equation("H*", k.optimum.transfers, optimum_names));
        for (const std::string& reached : reached_at(k.optimum, diagram)) add("reached at", element("code", reached));
    } else {
        add("fewest transfers", element("span", why_numeric(k.optimum, diagram)));
    }
    add("work", html::math_equation("FLOPs", k.flops, names));
    out.add(std::move(list));
    std::vector<std::vector<Element>> rows;
    for (const ArrayTransfers& a : k.cost.arrays)
        rows.push_back({element("span", a.pattern).data("array", diagram.array(a.array).name),
                        cell(a.stored ? "stored" : "loaded"), html::math(a.per_group, names),
                        html::math(a.per_launch, names)});
    out.add(html::table(fmt::format("What kernel {} moves", k.cost.kernel), {"array", "way", "a group", "a launch"}, rows));
}

/// The charts of a plan know one order of issue, that of one stream.
std::ptrdiff_t num_streams(const TileKernel& kernel) {
    return std::count_if(kernel.body.begin(), kernel.body.end(), [](const TileStatement& s) {
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
                        cell(std::to_string(choice.value)), cell(choice.by_hand ? "by hand" : "chosen"),
                        cell(choice.reason)});
}

}  // namespace

Element fixed_note(const ReportInput& input, std::string_view command) {
    Element out = element("p",
                          fmt::format("Of the setting that this page was written for: {} on {}. ",
                                      sizes_text(input.figures), input.figures.machine.name),
                          "note fixed");
    if (!command.empty())
        out.add(element(
            "span",
            {html::text("Of the one chosen: "),
             element("code", "", "command").set("data-command", fmt::format("napkin {} {}", command, input.request.file))}));
    return out.set("hidden", "");
}

Element text_section(const ReportInput& input) {
    Element out = section("text", "The text");
    out.add(code_block(input.request.text, known_names(input.derived.source), "text-line", "The diagram as text"));
    if (!input.request.schedule.empty()) {
        out.add(element("h3", "Choices by hand"));
        out.add(code_block(input.request.schedule, known_names(input.derived.diagram), "schedule-line",
                           "The schedule as text"));
    }
    return out;
}

Element derivation_section(const ReportInput& input) {
    const Derived& derived = input.derived;
    const html::KnownNames names = known_names(derived.diagram);
    const std::vector<Level>& levels = input.figures.machine.levels;
    const Subject subject{derived.source, &derived, nullptr, levels.empty() ? "memory" : levels.front().name, {}};
    Element out = section("derivation", "The derivation");
    out.add(fixed_note(input, "derive"));
    out.add(element("p", fmt::format("{} steps: {}. ", derived.steps.size(), rules_used(derived)) +
                             "Each is a named rewrite that keeps the value over the reals, with the condition under "
                             "which it may be done."));
    Element list = element("ol", "", "steps").set("id", "steps-list");
    std::size_t room = most_drawn_bytes;
    for (std::size_t i = 0; i < derived.steps.size(); ++i) list.add(step_item(subject, i + 1, names, room));
    out.add(diagram_figure(subject, "0"));
    out.add(std::move(list));
    out.add(element("h3", "What the steps come to"));
    out.add(diagram_figure(subject, "two-level"));
    for (const Kernel& kernel : derived.kernels) {
        out.add(element("h3", fmt::format("Kernel {}", kernel.name)));
        out.add(code_block(aligned(kernel_lines(derived, kernel), ""), names,
                           fmt::format("kernel-{}-line", &kernel - derived.kernels.data()),
                           fmt::format("Equations of kernel {}", kernel.name)));
    }
    for (const Refusal& refusal : derived.refusals)
        out.add(element("p", fmt::format("Refused: {}. {}", refusal.what, refusal.reason), "note"));
    return out;
}

Element cost_section(const ReportInput& input, const std::vector<KernelFigures>& costs) {
    Element out = section("cost", "The cost");
    out.add(fixed_note(input, "cost --explain"));
    for (const KernelFigures& k : costs) {
        out.add(element("h3", fmt::format("Kernel {}", k.cost.kernel)));
        add_formulas(out, input, k);
    }
    out.add(element("div").set("id", "numbers"));
    return out;
}

Element plan_section(const ReportInput& input) {
    Element out = section("plan", "The plan");
    out.add(fixed_note(input, "plan"));
    if (!input.plan) {
        out.add(element("p", "No plan: " + input.why_no_plan, "note"));
        return out;
    }
    for (const KernelPlan& kernel : input.plan->kernels) {
        const ScheduledKernel& s = kernel.scheduled;
        const Diagram& diagram = s.program->diagram;
        out.add(element("h3", fmt::format("Kernel {}", s.schedule.kernel)));
        std::vector<std::vector<Element>> rows;
        add_choices(rows, diagram, "group", s.schedule.group);
        add_choices(rows, diagram, "stream", s.schedule.stream);
        add_choices(rows, diagram, "subloop", s.schedule.subloop);
        rows.push_back({cell("threads"), cell(std::to_string(s.schedule.threads.value)),
                        cell(s.schedule.threads.by_hand ? "by hand" : "chosen"), cell(s.schedule.threads.reason)});
        out.add(html::table("Choices and their reasons", {"choice", "value", "by", "reason"}, rows, {1}));
        out.add(element("p", fmt::format("Predicted {}, bound by {}; H = {} values, M = {} values a core.",
                                         seconds_text(kernel.time.seconds), kernel.time.busy.front().what,
                                         count_text(kernel.time.transfers), count_text(kernel.memory_values))));
        out.add(element(
            "details", {element("summary", "The whole schedule"),
                        code_block(to_string(*s.program, *s.kernel, s.schedule), known_names(diagram),
                                   fmt::format("plan-{}-line", &kernel - input.plan->kernels.data()), "The schedule")}));
    }
    for (const std::string& note : input.notes) out.add(element("p", note, "note"));
    const bool is_charted = std::all_of(input.plan->kernels.begin(), input.plan->kernels.end(),
                                        [](const KernelPlan& k) { return num_streams(*k.scheduled.kernel) <= 1; });
    if (input.figures.machine.kind == MachineKind::gpu && is_charted) {
        Element of_plan = element("details",
                                  {element("summary", "Configuration, throughput and overlap of this plan")});
        for (Element& e : steps_content(placed_steps(*input.plan, input.figures.machine), "planned-"))
            of_plan.add(std::move(e));
        out.add(std::move(of_plan));
    }
    return out;
}

Element source_section(const ReportInput& input) {
    Element out = section("source", "The source");
    out.add(fixed_note(input, "emit"));
    if (input.emitted.empty()) {
        out.add(element("p", "No source: there is no plan for this machine and these choices.", "note"));
        return out;
    }
    const html::KnownNames names = known_names(input.derived.diagram);
    // Where each name stands first, so that one can go there from it.
    Element links = element("p", "Names, each at the line where it stands first: ");
    std::vector<std::string> all = names.arrays;
    all.insert(all.end(), names.axes.begin(), names.axes.end());
    const auto word_at = [&](const std::string& word) -> int {
        int line = 1;
        std::size_t searched = 0;
        for (std::size_t p = input.emitted.find(word); p != std::string::npos; p = input.emitted.find(word, p + 1)) {
            line += static_cast<int>(std::count(input.emitted.begin() + static_cast<std::ptrdiff_t>(searched),
                                                input.emitted.begin() + static_cast<std::ptrdiff_t>(p), '\n'));
            searched = p;
            const auto is_word = [&](std::size_t i) {
                const char c = i < input.emitted.size() ? input.emitted[i] : ' ';
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
            };
            if ((p == 0 || !is_word(p - 1)) && !is_word(p + word.size())) return line;
        }
        return 0;
    };
    for (const std::string& name : all)
        if (const int line = word_at(name); line > 0) {
            links.add(element("a", name)
                          .set("href", fmt::format("#source-line-{}", line))
                          .data(contains(names.axes, name) ? "axis" : "array", name));
            links.add(html::text(" "));
        }
    out.add(std::move(links));
    out.add(element("details",
                    {element("summary", fmt::format("The kernels' source, {} lines",
                                                    std::count(input.emitted.begin(), input.emitted.end(), '\n'))),
                     code_block(input.emitted, names, "source-line", "The kernels' source")})
                .set("id", "source-details"));
    return out;
}

Element grid_section(const ReportInput& input) {
    Element out = section("grid", "Other settings");
    out.add(fixed_note(input));
    out.add(element("p", "The same figures where one thing is changed: the machine, or one size halved or doubled."));
    std::vector<std::vector<Element>> rows;
    for (const GridSetting& g : input.grid) {
        std::vector<std::string> sizes;
        for (const auto& [axis, size] : g.request.sizes) sizes.push_back(fmt::format("{} = {}", axis, size));
        const std::string what = sizes.empty() ? "as above" : join(sizes, ", ");
        if (!g.figures) {
            rows.push_back({cell(g.request.machine), cell(what), cell(g.why_not), cell(""), cell(""), cell(""),
                            cell(""), cell("")});
            continue;
        }
        const Figures& f = *g.figures;
        double transfers = 0;
        std::string interval, rate;
        for (const KernelOnMachine& k : f.kernels) transfers += k.memory_transfers_bytes();
        if (f.steps && !f.steps->kernels.empty()) {
            const KernelSteps& k = f.steps->kernels.front();
            if (!k.charts.empty()) interval = fmt::format("{:.4g} clk", k.charts.front().chart.interval);
            if (!k.charts.empty() && k.charts.front().tensor_flop_per_s > 0)
                rate = fmt::format("{:.0f}", k.charts.front().tensor_flop_per_s / 1e12);
        }
        const bool has_cost = f.no_cost.empty();
        rows.push_back({cell(g.request.machine), cell(what), cell(has_cost ? seconds_text(f.seconds()) : ""),
                        cell(has_cost ? seconds_text(f.bound_s()) : ""),
                        cell(has_cost ? f.bound_by() : f.no_cost.front().message),
                        cell(has_cost ? bytes_text(transfers) : ""), cell(interval), cell(rate)});
    }
    out.add(html::table("A grid of settings",
                        {"machine", "sizes", "expected", "bound", "bound by", "through memory", "interval", "TFLOP/s"},
                        rows, {2, 3, 5, 6, 7}));
    return out;
}

}  // namespace napkin::draw
