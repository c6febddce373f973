#include "napkin/gallery.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "draw/compare.hpp"
#include "draw/diagram_picture.hpp"
#include "napkin/chart_picture.hpp"
#include "napkin/named_drawing.hpp"
#include "support/files.hpp"

namespace napkin::cli {

namespace {

constexpr double gallery_width = 960;  ///< pixels: what a page of a documentation shows whole

/// The options of a part. A fixed machine unless it says: which form is chosen must not depend on where the gallery is
/// made.
Options part_options(const Json& part, const std::filesystem::path& folder) {
    const auto path = [&](const char* key) {
        return part.contains(key) ? (folder / part.at(key).get<std::string>()).lexically_normal().string() : "";
    };
    Options out;
    out.file = path("file"), out.schedule = path("schedule");
    out.diagram = part.value("diagram", ""), out.form = part.value("form", "unscaled");
    out.machine = part.value("machine", "h100-sxm5");
    return out;
}

/// One figure's circuits, part after part.
Result<draw::Drawing> figure_drawing(const Json& figure, const std::filesystem::path& folder) {
    draw::Drawing out;
    out.title = "Figure " + figure.value("number", "") + ": " + figure.value("caption", "");
    out.relation = figure.value("relation", "");
    for (const Json& part : figure.at("parts")) {
        Options options = part_options(part, folder);
        options.file = (folder / part.at("file").get<std::string>()).lexically_normal().string();
        const std::string step = part.value("step", "two-level");
        auto named = named_drawing(options, step);
        if (!named) return named.errors();
        draw::Drawing drawing = std::move(named).value().drawing;
        if (out.relation.empty()) out.relation = drawing.relation;
        for (draw::Circuit& circuit : drawing.circuits) {
            if (!part.value("notes", true)) circuit.notes.clear();
            if (step == "0") circuit.caption.clear();
            out.circuits.push_back(std::move(circuit));
        }
    }
    return out;
}

/// The chart that is all of a figure, or none. Throws json::type_error where a figure has a chart beside other parts.
const Json* chart_of(const Json& figure) {
    const Json& parts = figure.at("parts");
    for (const Json& part : parts)
        if (part.contains("chart")) {
            if (parts.size() == 1) return &part;
            throw Json::type_error::create(302, "a chart is a figure of its own: " + figure.value("name", ""), &part);
        }
    return nullptr;
}

Result<svg::Document> figure_chart(const Json& part, const std::filesystem::path& folder) {
    ChartRequest request;
    request.common = part_options(part, folder);
    request.name = part.at("chart").get<std::string>(), request.kernel = part.value("kernel", "");
    return chart_picture(request);
}

/// A figure in one of the formats; nothing where it is a chart and the format is none of a chart's.
Result<std::optional<std::string>> figure_text(const Json& figure, const GalleryRequest& c,
                                               const std::filesystem::path& folder) {
    using Text = std::optional<std::string>;
    const std::string name = figure.at("name").get<std::string>();
    const auto svg_text = [&](svg::Document document) {
        document.id = name;
        return Text(svg::to_text(document));
    };
    if (const Json* part = chart_of(figure)) {
        if (c.format != "svg") return Text();
        auto chart = figure_chart(*part, folder);
        if (!chart) return chart.errors();
        return svg_text(std::move(chart).value());
    }
    const auto drawing = figure_drawing(figure, folder);
    if (!drawing) return drawing.errors();
    if (c.format == "dot") return Text(draw::to_dot(*drawing));
    const draw::Picture picture = draw::picture_of(
        *drawing, {c.width > 0 ? static_cast<double>(c.width) : gallery_width, draw::document_height});
    return c.format == "tikz" ? Text(draw::to_tikz(picture)) : svg_text(draw::to_svg(picture));
}

std::string gallery_index(const Json& figures) {
    std::string out =
        "# Gallery\n\nThe figures of *FlashAttention on a Napkin*, drawn by napkin from [programs](nk/) as it compiles "
        "them; nothing is drawn by "
        "hand. `napkin draw docs/gallery/figures.json` makes them all.\n";
    for (const Json& figure : figures) {
        const std::string number = figure.value("number", ""), name = figure.value("name", ""),
                          caption = figure.value("caption", "");
        const std::string title = number[0] >= '0' && number[0] <= '9' ? "Figure " + number : number;
        out += fmt::format("\n## {}\n{}\n\n![{}: {}]({}.svg)\n", title, caption, title, caption, name);
    }
    return out;
}

}  // namespace

ExitCode draw_gallery(const GalleryRequest& c) {
    auto source = read_source(c.common.file);
    if (!source) return fail(source.errors(), c.common);
    const Json list = Json::parse(source.value()->text, nullptr, false);
    const auto unreadable = [&](const std::string& why) {
        Diagnostic error{.code = "bad-gallery", .message = c.common.file + " is no list of figures: " + why};
        error.expected =
            "{\"figures\": [{\"number\", \"name\", \"caption\", \"parts\": [{\"file\", \"diagram\", \"step\"} or one "
            "{\"chart\", "
            "\"file\"}]}]}";
        return fail({error}, c.common);
    };
    if (!list.is_object() || !list.contains("figures") || !list["figures"].is_array())
        return unreadable("it has no \"figures\"");
    const std::filesystem::path folder = std::filesystem::path(c.common.file).parent_path(),
                                to = c.output.empty() ? folder : std::filesystem::path(c.output);
    std::vector<std::string> differences;
    const auto put = [&](const std::string& name, const std::string& text) -> Status {
        const std::string path = (to / name).string();
        if (!c.check) return replace_file(path, text);
        const auto kept = read_file(path);
        const std::string difference = kept ? draw::first_difference(text, *kept) : "there is no such file";
        if (!difference.empty()) differences.push_back(path + ": " + difference);
        return Done{};
    };
    const std::string ending = c.format == "tikz" ? ".tex" : "." + c.format;
    try {
        for (const Json& figure : list["figures"]) {
            const auto text = figure_text(figure, c, folder);
            if (!text) return fail(text.errors(), c.common);
            if (!*text) continue;
            if (const Status written = put(figure.at("name").get<std::string>() + ending, **text); !written)
                return fail(written.errors(), c.common);
        }
        if (c.format == "svg")
            if (const Status written = put("README.md", gallery_index(list["figures"])); !written)
                return fail(written.errors(), c.common);
    } catch (const nlohmann::json::exception& error) {
        return unreadable(error.what());
    }
    if (differences.empty()) return ExitCode::success;
    for (const std::string& difference : differences) say(difference);
    say("the gallery is not what napkin draws; if it should be, make it anew: napkin draw " + c.common.file);
    return ExitCode::bad_input;
}

}  // namespace napkin::cli
