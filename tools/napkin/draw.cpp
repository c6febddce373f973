// `napkin draw`: Neural Circuit Diagrams of a program, at each of its steps.
#include <fmt/format.h>

#include "draw/diagram_picture.hpp"
#include "draw/machine_steps.hpp"
#include "draw/picture_json.hpp"
#include "napkin/gallery.hpp"
#include "napkin/named_drawing.hpp"
#include "napkin/output_file.hpp"
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

/// A page, or a terminal of a hundred columns.
double page_width(const DrawCommand& c) {
    return c.width > 0 ? static_cast<double>(c.width) : picture_format(c) == "text" && !c.common.json ? 660 : 960;
}

std::string printed_drawing(const DrawCommand& c, const draw::Drawing& drawing) {
    const std::string format = picture_format(c);
    if (format == "dot") return draw::to_dot(drawing);
    const draw::Picture picture = draw::picture_of(drawing, {page_width(c), format == "text" ? 0 : draw::document_height});
    if (format == "svg") return svg::to_text(draw::to_svg(picture));
    if (format == "tikz") return draw::to_tikz(picture);
    return draw::to_terminal(picture, c.output.empty() && color_on_stdout(c.common));
}

ExitCode draw_command(const DrawCommand& c) {
    if (c.common.file.ends_with(".json")) {
        if (c.format == "text") throw UsageError("--format text: a gallery's figures are files of svg, tikz or dot");
        return draw_gallery({c.common, c.output, c.width, c.format.empty() ? "svg" : c.format, c.check});
    }
    if (c.check) throw UsageError("--check compares a gallery: give its list of figures, a .json file");
    const auto named = named_drawing(c.common, c.step);
    if (!named) return fail(named.errors(), c.common);
    std::string text;
    if (c.common.json) {
        Json document = json_document("draw");
        document["diagram"] = named.value().diagram;
        document["step"] = c.step;
        document.update(draw::drawing_json(
            named.value().drawing, draw::picture_of(named.value().drawing, {page_width(c), draw::document_height})));
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
    command.number("--width", c->width, 300, 100000,
                   "Of a page, in pixels: wider pictures are broken into systems, and those higher than 1400 into "
                   "columns (default: "
                   "960; for text 660, a hundred columns)");
    command.flag("--check", c->check,
                 "FILE is a gallery's list of figures (.json): compare the pictures that are there, and write none");
    command.pipeline(c->common);
}

}  // namespace napkin::cli
