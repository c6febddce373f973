#include <fmt/format.h>

#include <sstream>

#include "cost/report.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/drawings.hpp"
#include "draw/report_page.hpp"
#include "draw/setting_fragments.hpp"
#include "run/derivation.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/print.hpp"

namespace napkin::draw {
namespace {

using html::element;
using svg::Element;

Element section(std::string_view id, std::string_view heading) {
    Element out = element("section").set("id", id).set("aria-labelledby", fmt::format("{}-heading", id));
    out.add(element("h2", heading).set("id", fmt::format("{}-heading", id)));
    return out;
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

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
    const bool is_plain = all_of(
        word, [](char c) { return is_name_character(c) || contains(std::string_view("-./=,:+"), c); });
    if (is_plain && !word.empty()) return word;
    std::string out = "'";
    for (const char c : word) c == '\'' ? out += "'\\''" : out += c;
    return out + "'";
}

/// A derivation is of letters: no machine and no tile is among what its command takes.
bool is_in_letters(std::string_view command) { return command == "derive"; }

/// The call of the tool's command with what the page's own call says beside sizes and machine: "group q = 192" is
/// --group q=192.
std::string call_of(const FiguresRequest& request, std::string_view command) {
    std::string out = fmt::format("napkin {} {}", command, shell_word(request.file));
    if (!request.diagram.empty()) out += " --diagram " + shell_word(request.diagram);
    if (!request.fuse) out += " --no-fuse";
    for (std::string item : request.items) {
        std::erase(item, '=');
        std::istringstream words(item);
        std::string word;
        words >> word;
        if (is_in_letters(command) && word != "stream" && word != "form") continue;
        out += " --" + word;
        for (const char* before = " "; words >> word; before = "=") out += before + shell_word(word);
    }
    return out;
}

}  // namespace

Element fixed_note(const ReportInput& input, std::string_view command) {
    Element out = element("p",
                          fmt::format("Of the setting that this page was written for: {} on {}. ",
                                      sizes_text(input.figures), input.figures.machine.name),
                          "note fixed");
    if (!command.empty()) {
        Element call = element("code", "", "command").set("data-command", call_of(input.request, command));
        if (is_in_letters(command)) call.set("data-letters", "");
        out.add(element("span", {html::text("Of the one chosen: "), std::move(call)}));
    }
    return out.set("hidden", "");
}

Element text_section(const ReportInput& input) {
    Element out = section("text", "The text");
    out.add(html::code_block(input.request.text, known_names(input.derived.source), "text-line", "The diagram as text"));
    if (!input.request.schedule.empty()) {
        out.add(element("h3", "Overrides"));
        out.add(html::code_block(input.request.schedule, known_names(input.derived.diagram), "schedule-line",
                                 "The schedule as text"));
    }
    return out;
}

Element derivation_section(const ReportInput& input, std::size_t room) {
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
    for (std::size_t i = 0; i < derived.steps.size(); ++i) list.add(step_item(subject, i + 1, names, room));
    out.add(diagram_figure(subject, "0"));
    out.add(std::move(list));
    out.add(element("h3", "What the steps come to"));
    out.add(diagram_figure(subject, "two-level"));
    for (const Kernel& kernel : derived.kernels) {
        out.add(element("h3", fmt::format("Kernel {}", kernel.name)));
        out.add(html::code_block(aligned(kernel_lines(derived, kernel), ""), names,
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
    const html::KnownNames names = known_names(input.figures.derived.diagram);
    for (const KernelFigures& k : costs)
        for (Element& e : html::content(letters_report(input.figures.derived, k), names)) out.add(std::move(e));
    out.add(element("div").set("id", "numbers"));
    return out;
}

/// Where another setting is chosen, the core plans it, and knows no assembler.
Element planned_note(const ReportInput& input) {
    return element(
               "p",
               {html::text("Planned in this page for the setting that is chosen, by the model alone. Where a machine's "
                           "compiler refuses a "
                           "kernel for its registers, this takes the next plan: "),
                element("span", {element("code", "", "command").set("data-command", call_of(input.request, "plan"))})},
               "note planned")
        .set("hidden", "");
}

Element plan_section(const ReportInput& input) {
    Element out = section("plan", "The plan");
    if (!input.wasm.empty()) out.add(planned_note(input));
    out.add(element("div").set("id", "plan-content"));
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
    append(all, names.axes);
    const auto word_at = [&](const std::string& word) -> int {
        int line = 1;
        std::size_t searched = 0;
        for (std::size_t p = input.emitted.find(word); p != std::string::npos; p = input.emitted.find(word, p + 1)) {
            line += static_cast<int>(std::count(input.emitted.begin() + static_cast<std::ptrdiff_t>(searched),
                                                input.emitted.begin() + static_cast<std::ptrdiff_t>(p), '\n'));
            searched = p;
            const auto is_word = [&](std::size_t i) {
                return i < input.emitted.size() && is_name_character(input.emitted[i]);
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
                     html::code_block(input.emitted, names, "source-line", "The kernels' source")})
                .set("id", "source-details"));
    return out;
}

Element grid_section(const ReportInput& input) {
    Element out = section("grid", "Other settings");
    out.add(fixed_note(input));
    out.add(element("p", "The same figures where one thing is changed: the machine, or one size halved or doubled."));
    using report::shown;
    report::Table table{"", "A grid of settings", {}, {}};
    for (const char* head :
         {"machine", "sizes", "expected", "bound", "bound by", "through memory", "interval", "TFLOP/s of the interval"})
        table.columns.push_back({"", head});
    for (const GridSetting& g : input.grid) {
        std::vector<std::string> sizes;
        for (const auto& [axis, size] : g.request.sizes) sizes.push_back(fmt::format("{} = {}", axis, size));
        auto& row = table.rows.emplace_back();
        row = {shown(g.request.machine), shown(sizes.empty() ? "as above" : join(sizes, ", "))};
        if (!g.figures) {
            row.push_back(shown(g.why_not));
            continue;
        }
        const Figures& f = *g.figures;
        const bool has_cost = f.no_cost.empty();
        const double transfers = sum<double>(f.kernels, &KernelOnMachine::memory_transfers_bytes);
        row.push_back(f.plan ? report::seconds(f.plan->seconds()) : shown("no plan: " + f.no_plan.front().message));
        row.push_back(has_cost ? report::seconds(f.bound_s()) : shown(f.no_cost.front().message));
        row.push_back(shown(f.bound_by()));
        row.push_back(has_cost ? report::bytes(transfers) : shown(""));
        if (!f.steps || f.steps->kernels.empty() || f.steps->kernels.front().charts.empty()) continue;
        const StreamChart& chart = f.steps->kernels.front().charts.front();
        row.push_back({chart.chart.interval, fmt::format("{:.4g} clk", chart.chart.interval)});
        if (chart.tensor_flop_per_s > 0)
            row.push_back({chart.tensor_flop_per_s, fmt::format("{:.0f}", chart.tensor_flop_per_s / 1e12)});
    }
    out.add(html::table(table));
    return out;
}

}  // namespace napkin::draw
