#include "draw/report_page.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include "draw/measured_chart.hpp"
#include "draw/page_texts.hpp"
#include "draw/setting_fragments.hpp"
#include "support/cache.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

using html::element;
using svg::Element;

/// A page weighs less than three megabytes, its name and headings included.
constexpr std::size_t most_page_bytes = 2'950'000;
/// What the answers for other settings may take of it.
constexpr std::size_t most_answer_bytes = 1'200'000;

constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size() / 3 * 4 + 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto byte = [&](std::size_t k) { return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U; };
        const unsigned three = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
        out += base64_digits[three >> 18U];
        out += base64_digits[three >> 12U & 63U];
        out += i + 1 < bytes.size() ? base64_digits[three >> 6U & 63U] : '=';
        out += i + 2 < bytes.size() ? base64_digits[three & 63U] : '=';
    }
    return out;
}

/// What a policy names a style or script by: none but these are applied.
std::string hash_source(std::string_view content) {
    const std::string hex = sha256(content);
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return "'sha256-" + base64(bytes) + "'";
}

/// Data that the script reads. No "<" is in it, so that nothing in it ends the element.
Element data(std::string_view id, const nlohmann::ordered_json& json) {
    std::string text;
    for (const char c : json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace))
        c == '<' ? text += "\\u003c" : text += c;
    return html::plain("script", text).set("type", "application/json").set("id", id);
}

/// One number of the setting, of values that may be chosen: 0 leaves it as it is given.
Element slider(const std::string& kind, const std::string& axis, const std::vector<std::int64_t>& values,
               std::int64_t at_first, const std::string& name) {
    std::vector<std::string> texts;
    for (const std::int64_t v : values) texts.push_back(std::to_string(v));
    const auto first = find(values, at_first);
    Element input = element("input").set("type", "range").set("min", "0").set("max", std::to_string(values.size() - 1));
    input.set("value", std::to_string(first == values.end() ? 0 : first - values.begin()));
    input.set("data-kind", kind).set("data-of", axis).set("data-values", join(texts, " ")).set("aria-label", name);
    return element("label", {html::text(name), std::move(input),
                             element("output", at_first > 0 ? std::to_string(at_first) : "as given")});
}

Element fieldset(const std::string& legend, std::vector<Element> of) {
    Element out = element("fieldset", "", "live");
    out.add(element("legend", legend));
    for (Element& e : of) out.add(std::move(e));
    return out;
}

std::vector<std::int64_t> sizes_around(std::int64_t size) {
    std::vector<std::int64_t> out;
    for (std::int64_t by = 16; by > 1; by /= 2)
        if (size % by == 0 && size / by >= 8) out.push_back(size / by);
    for (std::int64_t by = 1; by <= 16 && size <= (std::int64_t{1} << 24) / by; by *= 2) out.push_back(size * by);
    return out;
}

std::string setting_name(const FiguresRequest& request) {
    std::vector<std::string> parts{request.machine};
    for (const auto& [axis, size] : request.sizes) parts.push_back(fmt::format("{} = {}", axis, size));
    return join(parts, ", ");
}

Element measured_section(const ReportInput& input) {
    Element out = element("section").set("id", "measured").set("aria-labelledby", "measured-heading");
    out.add(element("h2", "Measured").set("id", "measured-heading"));
    out.add(fixed_note(input));
    using Of = const MeasuredPoint&;
    out.add(html::table(report::table_of<MeasuredPoint>(
        "", "Runs, in seconds", input.measured,
        {{"", "run", [](Of p) { return report::words(p.name); }},
         {"", "predicted", [](Of p) { return report::number(p.predicted_s, 4); }},
         {"", "measured", [](Of p) { return report::number(p.measured_s, 4); }},
         {"", "measured / predicted", [](Of p) { return report::number(p.measured_s / p.predicted_s); }}})));
    svg::Document chart = measured_chart(input.measured, input.figures.diagram.name);
    chart.id = "measured-chart";
    out.add(element("figure", {html::picture(chart)}));
    return out;
}

/// The parts that depend on the setting, put into the elements with their names.
void fill_fragments(Element& e, const std::vector<Fragment>& fragments) {
    for (const auto& [name, value] : e.attributes)
        if (name == "id")
            for (const Fragment& f : fragments)
                if (f.id == value) append(e.children, f.content);
    for (Element& child : e.children) fill_fragments(child, fragments);
}

Element live_section(std::string_view id, std::string_view part, std::string_view heading, std::string_view what,
                     Element note = {}) {
    Element out = element("section").set("id", id).set("aria-labelledby", fmt::format("{}-heading", id));
    out.add(element("h2", heading).set("id", fmt::format("{}-heading", id)));
    if (!what.empty()) out.add(element("p", what));
    if (!note.children.empty() || !note.text.empty()) out.add(std::move(note));
    out.add(element("div").set("id", part));
    return out;
}

/// All but the controls. `room`: bytes that the pictures of the derivation, and those of the steps, may take.
Element main_of(const ReportInput& input, const std::vector<KernelFigures>& costs, std::vector<Fragment> fragments,
                std::size_t room) {
    Element main = element("main");
    main.add(element("div").set("id", "summary"));
    main.add(text_section(input));
    main.add(derivation_section(input, room));
    main.add(cost_section(input, costs));
    main.add(plan_section(input));
    if (input.figures.machine.kind == MachineKind::gpu)
        main.add(live_section(
            "step-pictures-section", "step-pictures", "The steps on the machine",
            "The paper's steps from the pseudocode to a configured kernel, each with all that those before it show.",
            fixed_note(input)));
    main.add(live_section("steps-section", "steps", "Configuration, throughput and overlap",
                          "The registers of threads and of warpgroups, the memory that a block shares, and the steady "
                          "state of streams."));
    main.add(live_section("roofline-section", "roofline", "Roofline", ""));
    main.add(live_section("tiles-section", "tiles", "Tiles", ""));
    main.add(live_section("machine-section", "machine-chart", "The machine", ""));
    main.add(source_section(input));
    if (!input.measured.empty()) main.add(measured_section(input));
    main.add(grid_section(input));
    fragments.push_back(step_pictures(input.figures, room));
    fill_fragments(main, fragments);
    return main;
}

}  // namespace

Element controls(const ReportInput& input, const std::vector<GridSetting>& grid) {
    Element out =
        element("div").set("id", "controls").set("hidden", "").set("role", "group").set("aria-label", "The setting");
    Element machine = element("select").set("id", "machine");
    for (const std::string& name : input.machines) {
        Element option = element("option", name).set("value", name);
        if (name == input.request.machine) option.set("selected", "");
        machine.add(std::move(option));
    }
    out.add(fieldset("Machine", {element("label", {html::text("machine"), std::move(machine)})}));
    const Figures& f = input.figures;
    std::vector<Element> sizes, tiles;
    for (const AxisId a : f.diagram.axes.ids())
        if (has_own_size(f.diagram.axes[a]))
            sizes.push_back(slider("sizes", f.diagram.axes[a].name, sizes_around(f.extents[a]), f.extents[a],
                                   f.diagram.axes[a].name));
    const auto add = [&](const char* kind, const char* letter, AxisId axis, std::vector<std::int64_t> values,
                         const std::map<std::string, std::int64_t>& given) {
        const std::string& name = input.derived.diagram.axis(axis).name;
        const auto first = given.find(name);
        if (first != given.end() && !contains(values, first->second))
            values.insert(std::upper_bound(values.begin(), values.end(), first->second), first->second);
        tiles.push_back(
            slider(kind, name, values, first == given.end() ? 0 : first->second, fmt::format("{}_{}", letter, name)));
    };
    std::vector<AxisId> grouped, streamed;
    for (const Kernel& kernel : input.derived.kernels) {
        for (const AxisId axis : kernel.group_axes)
            if (!contains(grouped, axis)) grouped.push_back(axis);
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage); loop && !contains(streamed, loop->axis))
                streamed.push_back(loop->axis);
    }
    for (const AxisId axis : grouped)
        add("group", "g", axis, {0, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512}, input.request.group);
    for (const AxisId axis : streamed)
        add("stream", "s", axis, {0, 16, 32, 48, 64, 96, 128, 192, 256, 512}, input.request.stream);
    for (const AxisId axis : grouped) add("warpgroup", "w", axis, {0, 64, 128, 192, 256}, input.request.warpgroup);
    out.add(fieldset("Sizes", std::move(sizes)));
    out.add(fieldset("Group, stream and warpgroup sizes", std::move(tiles)));
    Element settings = element("select").set("id", "setting");
    for (std::size_t i = 0; i < grid.size(); ++i)
        if (!grid[i].answer.is_null())
            settings.add(element("option", setting_name(grid[i].request)).set("value", std::to_string(i)));
    out.add(element("label", {html::text("setting"), std::move(settings)}).set("hidden", ""));
    out.add(element("p").set("id", "state").set("role", "status").set("aria-live", "polite"));
    return out;
}

std::string report_page(const ReportInput& input) {
    const Figures& f = input.figures;
    const std::string title = fmt::format("{} on {}", f.diagram.name, f.machine.name);
    const std::string style = std::string(report_style()) + svg::style_sheet(), script(report_script());
    Element head = element("head");
    head.add(element("meta").set("charset", "utf-8"));
    head.add(element("meta")
                 .set("http-equiv", "Content-Security-Policy")
                 .set("content", fmt::format("default-src 'none'; style-src {}; script-src {} 'wasm-unsafe-eval'; "
                                             "base-uri 'none'; form-action 'none'",
                                             hash_source(style), hash_source(script))));
    head.add(element("meta").set("name", "viewport").set("content", "width=device-width, initial-scale=1"));
    head.add(element("meta").set("name", "color-scheme").set("content", "light dark"));
    head.add(element("meta").set("name", "generator").set("content", "napkin " NAPKIN_VERSION));
    head.add(element("title", title + ": a report of napkin"));
    head.add(html::plain("style", style));

    Element body = element("body");
    body.add(element("a", "To the figures", "skip").set("href", "#steps-section"));
    body.add(element("header").set("id", "heading"));
    std::vector<std::pair<const char*, const char*>> places = {{"text", "text"},
                                                               {"derivation", "derivation"},
                                                               {"cost", "cost"},
                                                               {"plan", "plan"},
                                                               {"step-pictures-section", "steps"},
                                                               {"steps-section", "configuration and overlap"},
                                                               {"roofline-section", "roofline"},
                                                               {"tiles-section", "tiles"},
                                                               {"machine-section", "machine"},
                                                               {"source", "source"},
                                                               {"grid", "settings"}};
    if (!input.measured.empty()) places.emplace_back("measured", "measured");
    const bool has_steps = f.machine.kind == MachineKind::gpu;
    if (!has_steps) std::erase_if(places, [](const auto& place) { return std::string_view(place.second) == "steps"; });
    Element links = element("ul");
    for (const auto& [id, name] : places)
        links.add(element("li", {element("a", name).set("href", fmt::format("#{}", id))}));
    body.add(element("nav", {std::move(links)}).set("aria-label", "Parts of the report"));
    const std::vector<KernelFigures> costs = costs_of(f);
    // What there is room for depends on how long the rest is.
    std::size_t room = most_picture_bytes;
    const std::vector<Fragment> fragments = setting_fragments(f, costs);
    fill_fragments(body, fragments);
    Element main = main_of(input, costs, fragments, room);
    std::size_t others = html::to_text(head).size() + script.size() + 4 * ((input.wasm.size() + 2) / 3);
    others += html::to_text(data("figures", figures_json(f, costs))).size() + input.request.text.size();
    others += html::to_text(controls(input, input.grid)).size();
    const auto bytes = [&] { return others + html::to_text(main).size(); };
    for (int tries = 0; tries < 4 && room > 0 && bytes() > most_page_bytes; ++tries) {
        // Two sections have pictures. Those that are left out are whole ones, so that less may be left than is asked
        // for.
        room -= std::min(room, (bytes() - most_page_bytes) / 2 + 20'000);
        main = main_of(input, costs, fragments, room);
    }
    std::vector<GridSetting> grid = input.grid;
    if (input.wasm.empty())
        fit_answers(grid, std::min(most_answer_bytes, most_page_bytes - std::min(most_page_bytes, bytes())));
    main.children.insert(main.children.begin(), controls(input, grid));
    body.add(std::move(main));
    body.add(data("request", request_json(input.request)));
    body.add(data("figures", figures_json(f, costs)));
    if (input.wasm.empty()) {
        nlohmann::ordered_json answers = nlohmann::ordered_json::array();
        for (const GridSetting& g : grid) answers.push_back(g.answer);
        body.add(data("answers", answers));
    } else {
        body.add(html::plain("script", base64(input.wasm)).set("type", "text/plain").set("id", "core"));
    }
    body.add(html::plain("script", script));
    Element root = element("html", {std::move(head), std::move(body)}).set("lang", "en");
    return "<!DOCTYPE html>\n" + html::to_text(root) + "\n";
}

}  // namespace napkin::draw
