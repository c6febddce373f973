// `napkin draw`: Neural Circuit Diagrams of a program, at each of its steps.
#include <fmt/format.h>

#include <filesystem>

#include "draw/compare.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/drawings.hpp"
#include "draw/picture_json.hpp"
#include "napkin/command.hpp"
#include "napkin/output_file.hpp"
#include "plan/by_hand.hpp"
#include "steps/steps.hpp"
#include "support/files.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

const std::vector<std::string> picture_formats = {"svg", "tikz", "dot", "text"};

struct DrawCommand {
    Options common;
    std::string step = "two-level", format, output;
    std::int64_t width = 0;  ///< 0: as the format is used to
    bool check = false;
};

/// By the option, else by the name of the file, else for the terminal.
std::string picture_format(const DrawCommand& c) {
    if (!c.format.empty()) return c.format;
    const std::string& o = c.output;
    return o.empty() || o.ends_with(".txt")              ? "text"
           : o.ends_with(".tex") || o.ends_with(".tikz") ? "tikz"
           : o.ends_with(".dot") || o.ends_with(".gv")   ? "dot"
                                                         : "svg";
}

/// "sizes: q = 4096, x = 4096", where all are known.
std::vector<std::string> drawn_sizes(const Diagram& diagram, const std::map<std::string, std::int64_t>& given) {
    const auto extents = bind_sizes(diagram, given);
    if (!extents || diagram.axes.empty()) return {};
    std::vector<std::string> sizes;
    for (std::size_t a = 0; a < diagram.axes.size(); ++a)
        sizes.push_back(fmt::format("{} = {}", diagram.axes[a].name, (*extents)[a]));
    return {"sizes: " + join(sizes, ", ")};
}

/// The paper's steps, where a machine was named and a step is asked for that needs one.
Result<std::optional<StepReport>> drawn_steps(const DrawCommand& c, const Compilation& compilation) {
    const bool is_needed = contains(draw::machine_step_names(), c.step) ||
                           (c.step == "all" && !c.common.machine.empty() && compilation.machine.kind == MachineKind::gpu);
    if (!is_needed) return std::optional<StepReport>();
    PipelineOptions file;
    if (const Status read = read_schedule(c.common, file); !read) return read.errors();
    const auto items = all_by_hand(compilation.derived, {}, file.schedule_file);
    if (!items) return items.errors();
    auto report = paper_steps(compilation.derived, compilation.extents, compilation.machine, *items);
    if (!report) return report.errors();
    return std::optional<StepReport>(std::move(report).value());
}

/// A page, or a terminal of a hundred columns.
double page_width(const DrawCommand& c) {
    return c.width > 0 ? static_cast<double>(c.width) : picture_format(c) == "text" && !c.common.json ? 660 : 960;
}

std::string printed_drawing(const DrawCommand& c, const draw::Drawing& drawing) {
    const std::string format = picture_format(c);
    if (format == "dot") return draw::to_dot(drawing);
    const draw::Picture picture = draw::picture_of(drawing, {page_width(c)});
    if (format == "svg") return svg::to_text(draw::to_svg(picture));
    if (format == "tikz") return draw::to_tikz(picture);
    return draw::to_terminal(picture, c.output.empty() && color_on_stdout(c.common));
}

/// The drawing of a step, with the name of the diagram.
struct NamedDrawing {
    std::string diagram;
    draw::Drawing drawing;
};
Result<NamedDrawing> drawing_at(const DrawCommand& c) {
    const bool on_machine = contains(draw::machine_step_names(), c.step);
    const auto compilation = compile(
        c.common, on_machine || (c.step == "all" && !c.common.machine.empty()) ? Pass::size : Pass::choose);
    if (!compilation) return compilation.errors();
    const auto steps = drawn_steps(c, *compilation);
    if (!steps) return steps.errors();
    draw::Subject subject{compilation->diagram, &compilation->derived, nullptr, "memory", {}};
    if (const auto& report = *steps) subject.steps = &*report;
    if (subject.steps && !compilation->machine.levels.empty())
        subject.memory = compilation->machine.levels.front().name;
    subject.notes = drawn_sizes(compilation->diagram, assignments(c.common.set, "--set"));
    const std::vector<draw::StepName> names = draw::step_names(subject);
    const auto is_step = [&](const draw::StepName& s) { return s.name == c.step; };
    if (c.step != "all" && std::none_of(names.begin(), names.end(), is_step)) {
        std::vector<std::string> known;
        for (const draw::StepName& s : names)
            if (s.name.find_first_not_of("0123456789") != std::string::npos) known.push_back(s.name);
        throw UsageError(
            fmt::format("there is no step `{}`: expected 0 to {}, {}, all{}", c.step, compilation->derived.steps.size(),
                        join(known, ", "),
                        subject.steps ? "" : ", or on a GPU's --machine " + join(draw::machine_step_names(), ", ")));
    }
    return NamedDrawing{compilation->diagram.name, draw::drawing_of(subject, c.step)};
}

/// One figure's circuits, part after part.
Result<draw::Drawing> figure_drawing(const Json& figure, const std::filesystem::path& folder) {
    draw::Drawing out;
    out.title = "Figure " + figure.value("number", "") + ": " + figure.value("caption", "");
    out.relation = figure.value("relation", "");
    for (const Json& part : figure.at("parts")) {
        DrawCommand c;
        c.common.file = (folder / part.at("file").get<std::string>()).lexically_normal().string();
        c.common.diagram = part.value("diagram", ""), c.step = part.value("step", "two-level");
        c.common.form = part.value("form", "unscaled");
        if (part.contains("schedule"))
            c.common.schedule = (folder / part.at("schedule").get<std::string>()).lexically_normal().string();
        // A fixed machine: which form is chosen must not depend on where the gallery is made.
        c.common.machine = part.value("machine", "h100-sxm5");
        auto named = drawing_at(c);
        if (!named) return named.errors();
        draw::Drawing drawing = std::move(named).value().drawing;
        if (out.relation.empty()) out.relation = drawing.relation;
        for (draw::Circuit& circuit : drawing.circuits) {
            if (!part.value("notes", true)) circuit.notes.clear();
            if (c.step == "0") circuit.caption.clear();
            out.circuits.push_back(std::move(circuit));
        }
    }
    return out;
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
        out += fmt::format("\n## {}\n{}\n\n", title, caption);
        if (figure.contains("command"))
            out += fmt::format("Printed by `{}`.\n", figure.at("command").get<std::string>());
        else
            out += fmt::format("![{}: {}]({}.svg)\n", title, caption, name);
    }
    return out;
}

/// Every figure of the list beside it, or in the folder of -o; with --check, compares those that are there.
ExitCode draw_gallery(const DrawCommand& c) {
    auto source = read_source(c.common.file);
    if (!source) return fail(source.errors(), c.common);
    const Json list = Json::parse(source.value()->text, nullptr, false);
    const auto unreadable = [&](const std::string& why) {
        Diagnostic error;
        error.code = "bad-gallery", error.message = c.common.file + " is no list of figures: " + why;
        error.expected =
            "{\"figures\": [{\"number\", \"name\", \"caption\", \"parts\": [{\"file\", \"diagram\", \"step\"}]}]}";
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
    try {
        for (const Json& figure : list["figures"]) {
            if (figure.contains("command")) continue;
            const auto drawing = figure_drawing(figure, folder);
            if (!drawing) return fail(drawing.errors(), c.common);
            svg::Document picture = draw::to_svg(
                draw::picture_of(drawing.value(), {c.width > 0 ? static_cast<double>(c.width) : 960}));
            picture.id = figure.at("name").get<std::string>();
            if (const Status written = put(picture.id + ".svg", svg::to_text(picture)); !written)
                return fail(written.errors(), c.common);
        }
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

ExitCode draw_command(const DrawCommand& c) {
    if (c.common.file.ends_with(".json")) return draw_gallery(c);
    if (c.check) throw UsageError("--check compares a gallery: give its list of figures, a .json file");
    const auto named = drawing_at(c);
    if (!named) return fail(named.errors(), c.common);
    std::string text;
    if (c.common.json) {
        Json document = json_document("draw");
        document["diagram"] = named.value().diagram;
        document["step"] = c.step;
        document.update(draw::drawing_json(named.value().drawing, draw::picture_of(named.value().drawing, {page_width(c)})));
        text = json_text(document, 2) + "\n";
    } else {
        text = printed_drawing(c, named.value().drawing);
    }
    return write_output(c.output, text, c.common);
}

}  // namespace

void add_draw(CLI::App& app, Main& main) {
    const auto c = std::make_shared<DrawCommand>();
    Command command(app, main, "draw", "Draw the Neural Circuit Diagram of a program, at any step of its derivation",
                    "napkin draw examples/attention.nk -o attention.svg", [c] { return draw_command(*c); });
    command.file(c->common);
    command.text(
        "--step", "STEP", c->step,
        "0: the definition; 1, 2, …: after so many rewrites; type, whole, two-level (default), partition, condition, "
        "expansion, cached, cross-transfer, pseudocode; with a GPU's --machine " +
            join(draw::machine_step_names(), ", ") + "; all");
    command.text("--format", "FORMAT", c->format,
                 "svg, tikz, dot or text (default: by the name of -o; without -o, text)", picture_formats);
    command.text("-o,--output", "FILE", c->output, "Where to write it (default: the terminal)");
    command.number(
        "--width", c->width, 300, 100000,
        "Of a page, in pixels: wider pictures are broken into systems (default: 960; for text 660, a hundred columns)");
    command.flag("--check", c->check,
                 "FILE is a gallery's list of figures (.json): compare the pictures that are there, and write none");
    command.sizes(c->common);
    command.derivation(c->common);
    command.plan(c->common);
    command.passes(c->common);
    command.output(c->common);
}

}  // namespace napkin::cli
