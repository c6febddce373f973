// `napkin report`: all that is known of a diagram on a machine, as one page that stands by itself.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "draw/measured_chart.hpp"
#include "draw/report_page.hpp"
#include "machine/builtin.hpp"
#include "napkin/command.hpp"
#include "napkin/output_file.hpp"
#include "support/files.hpp"

namespace napkin::cli {

namespace {

struct ReportCommand {
    Options common;
    std::string output, wasm;
    std::vector<std::string> measured;
};

/// The machines of a kind that come with napkin, and the one at hand first where it is none of them.
std::vector<std::string> machines_like(const Machine& machine) {
    std::vector<std::string> out;
    bool is_known = false;
    for (const EmbeddedText& text : builtin_machine_texts()) {
        const auto known = load_machine(std::string(text.name));
        if (!known || known->kind != machine.kind) continue;
        out.emplace_back(text.name);
        is_known = is_known || text.name == machine.name;
    }
    if (!is_known) out.insert(out.begin(), machine.name);
    return out;
}

/// What the setting is, as the command line and the text say it.
draw::FiguresRequest request_of(const Compilation& c, const PipelineOptions& options) {
    draw::FiguresRequest out;
    out.text = c.source->text, out.file = c.source->name, out.diagram = options.diagram;
    out.machine = c.machine.name;
    bool is_known = false;
    for (const EmbeddedText& text : builtin_machine_texts()) is_known = is_known || text.name == out.machine;
    if (!is_known) out.machine_text = to_toml(c.machine);
    if (options.schedule_file) out.schedule = options.schedule_file->text;
    out.items = options.schedule;
    out.sizes = options.sizes;
    out.fuse = options.fuse;
    return out;
}

/// The plan and its source. A plan that cannot be made is no fault of the report: the choices may be of the paper's hierarchy alone.
void add_plan_and_source(const Options& options, draw::ReportInput& input) {
    const auto compiled = compile(options, Pass::emit);
    if (compiled) {
        input.plan = compiled->plan, input.notes = compiled->notes;
        input.emitted = kernels_of(compiled->code);
        return;
    }
    const Diagnostic& why = compiled.errors().front();
    input.why_no_plan = why.message + (why.hint.empty() ? "." : "; " + why.hint + ".");
}

Result<std::string> read_wasm(const std::string& path) {
    if (path.empty()) return std::string();
    // One that is compressed or not: a page holds it compressed.
    auto bytes = read_file(path, std::size_t{64} << 20U);
    if (!bytes) return file_error(errno, "unreadable-file", "cannot read " + path);
    if (bytes->starts_with("\x1f\x8b")) return *bytes;
    return Diagnostic{.code = "not-a-core",
                      .range = {},
                      .message = fmt::format("'{}' is no compressed WebAssembly module", path),
                      .expected = "build/wasm/napkin.wasm.gz, as scripts/wasm.sh makes it",
                      .hint = "",
                      .notes = {}};
}

ExitCode report(const ReportCommand& c) {
    const auto compilation = compile(c.common, Pass::size);
    if (!compilation) return fail(compilation.errors(), c.common);
    PipelineOptions options = pipeline_options(c.common, Pass::size);
    if (const Status read = read_schedule(c.common, options); !read) return fail(read.errors(), c.common);
    draw::ReportInput input;
    input.request = request_of(*compilation, options);
    input.derived = compilation->derived;
    auto figures = draw::figures_for(input.request);
    if (!figures) return fail(figures.errors(), c.common);
    input.figures = std::move(figures).value();
    add_plan_and_source(c.common, input);
    for (const std::string& file : c.measured) {
        const auto text = read_source(file);
        if (!text) return fail(text.errors(), c.common);
        const auto points = draw::measured_points(file, (*text)->text);
        if (!points) return fail(points.errors(), c.common);
        input.measured.insert(input.measured.end(), points->begin(), points->end());
    }
    auto wasm = read_wasm(c.wasm);
    if (!wasm) return fail(wasm.errors(), c.common);
    input.wasm = std::move(wasm).value();
    input.machines = machines_like(input.figures.machine);
    input.grid = draw::grid_of(input.request, input.figures.diagram, input.figures.extents, input.machines);
    return write_output(c.output, draw::report_page(input), c.common);
}

}  // namespace

void add_report(CLI::App& app, Main& main) {
    const auto c = std::make_shared<ReportCommand>();
    Command command(app, main, "report", "Write all that is known of a diagram on a machine as one page that stands by itself",
                    "napkin report examples/attention.nk --machine h100-sxm5 -o report.html", [c] { return report(*c); });
    command.file(c->common);
    command.text("-o,--output", "FILE", c->output, "Where to write (default: to stdout)");
    command.list("--measured", "FILE", c->measured, "Runs to set beside the prediction: JSON of `napkin run` or of bench/results", false);
    command.text("--wasm", "FILE", c->wasm, "The core as WebAssembly, with which sliders choose any setting (scripts/wasm.sh makes it)");
    command.sizes(c->common);
    command.derivation(c->common);
    command.plan(c->common);
}

}  // namespace napkin::cli
