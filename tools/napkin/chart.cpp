// `napkin chart`: what the model knows of a diagram or a machine as a picture, from the same data that the other
// commands print.
#include "napkin/chart_picture.hpp"
#include "napkin/output_file.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

struct ChartCommand {
    ChartRequest request;
    std::string output, format = "svg";
};

ExitCode chart(const ChartCommand& c) {
    const Options& options = c.request.common;
    if (c.format == "trace") {
        if (c.request.name != "overlap") throw UsageError("--format trace: only of chart overlap");
        if (options.file.empty()) throw UsageError("chart overlap: of what? FILE is a diagram");
        const auto text = trace_text(c.request);
        return text ? write_output(c.output, *text, options) : fail(text.errors(), options);
    }
    const auto drawing = chart_picture(c.request);
    return drawing ? write_output(c.output, svg::to_text(*drawing), options) : fail(drawing.errors(), options);
}

}  // namespace

void add_chart(CLI::App& app, Main& main) {
    const auto c = std::make_shared<ChartCommand>();
    Command command(
        app, main, "chart", "Draw what the model knows, as SVG: overlap, roofline, tiles, layouts and others",
        "napkin chart overlap examples/schedules/napkin.nk --machine h100-sxm5 --schedule \\\n"
        "    examples/schedules/napkin-figure-34.schedule -o overlap.svg\n"
        "  napkin chart roofline examples/attention.nk --machine h100-sxm5 -o roofline.svg\n"
        "  napkin chart layout 'Sw<3,4,3> o (8,64):(64,1)' -o layout.svg\n"
        "  napkin chart sweep examples/attention.nk --machine h100-sxm5,h200 --sweep q=x=1024..65536 -o sweep.svg",
        [c] { return chart(*c); });
    command.argument("CHART", c->request.name, join(chart_names(), ", "));
    command.argument("FILE", c->request.common.file,
                     "A diagram; of a layout, the layout; of what is measured, a run's JSON", false);
    command.text("--diagram", "NAME", c->request.common.diagram, "Which diagram of the file (default: the last)");
    command.text("-o,--output", "FILE", c->output, "Where to write (default: to stdout)");
    command.text("--format", "FORMAT", c->format, "svg, or of the overlap a trace that Perfetto opens",
                 {"svg", "trace"});
    command.text("--kernel", "NAME", c->request.kernel, "Which kernel, where there are several (default: the first)");
    command.list("--sweep", "AXIS=LO..HI", c->request.sweeps,
                 "The sizes of chart sweep, as `napkin cost --sweep` has them", false);
    command.list("--measured", "FILE", c->request.measured,
                 "Runs to draw beside the prediction: JSON of `napkin run` or of bench/results", false);
    command.number("--value-bytes", c->request.value_bytes, 1, 16, "Of a layout's values, for their banks (default 2)");
    command.number("--banks", c->request.banks, 1, 1024, "Banks of the shared memory (default 32, of 4 bytes)");
    command.sizes(c->request.common);
    command.derivation(c->request.common);
    command.plan(c->request.common);
}

}  // namespace napkin::cli
