// `napkin report`: all that is known of a diagram on a machine, as one page that stands by itself.
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "draw/measured_chart.hpp"
#include "draw/report_page.hpp"
#include "machine/builtin.hpp"
#include "napkin/command.hpp"
#include "napkin/output_file.hpp"
#include "support/files.hpp"
#include "support/json.hpp"

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

/// What `napkin plan` chooses for a setting of the page, or `napkin emit` with `until`.
Result<Compilation> compiled(const Options& common, const draw::FiguresRequest& request, Pass until) {
    PipelineOptions options = pipeline_options(common, until);
    if (!request.schedule.empty())
        if (const Status read = read_schedule(common, options); !read) return read.errors();
    options.sizes = request.sizes;
    // A machine of its own file is the page's.
    if (request.machine_text.empty()) options.machine = request.machine;
    auto source = read_source(common.file);
    if (!source) return source.errors();
    return run_pipeline(std::move(source).value(), options);
}

/// The core where the build puts it, beside the tool, or where an installation has it; empty where there is none.
std::string core_of_tool() {
    std::error_code code;
    const auto tool = std::filesystem::read_symlink("/proc/self/exe", code);
    if (code) return "";
    const auto folder = tool.parent_path();
    for (const auto& core : {folder / "napkin.wasm.gz", folder.parent_path() / "share/napkin/napkin.wasm.gz"})
        if (std::filesystem::exists(core, code)) return core.string();
    return "";
}

Result<std::string> read_wasm(const std::string& path) {
    if (path.empty() || path == "none") return std::string();
    // One that is compressed or not: a page holds it compressed.
    errno = 0;
    auto bytes = read_file(path, std::size_t{64} << 20U);
    if (!bytes) return file_error(errno, "unreadable-file", "cannot read " + path);
    if (bytes->starts_with("\x1f\x8b")) return *bytes;
    return Diagnostic{.code = "not-a-core",
                      .range = {},
                      .message = fmt::format("'{}' is no compressed WebAssembly module", path),
                      .expected = "napkin.wasm.gz, as `cmake --build --preset release --target napkin-wasm` makes it",
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
    for (const std::string& file : c.measured) {
        const auto text = read_source(file);
        if (!text) return fail(text.errors(), c.common);
        const auto points = draw::measured_points(file, (*text)->text);
        if (!points) return fail(points.errors(), c.common);
        append(input.measured, *points);
    }
    auto wasm = read_wasm(c.wasm.empty() ? core_of_tool() : c.wasm);
    if (!wasm) return fail(wasm.errors(), c.common);
    input.wasm = std::move(wasm).value();
    const auto planned = [&](const draw::FiguresRequest& request, const draw::Setting&) -> Result<ChosenPlan> {
        auto made = compiled(c.common, request, Pass::plan);
        if (!made) return made.errors();
        return ChosenPlan{std::move(made->derived), std::move(made->plan), std::move(made->notes)};
    };
    auto figures = draw::figures_for(input.request, [&](const auto& request, const draw::Setting&) -> Result<ChosenPlan> {
        auto made = compiled(c.common, request, Pass::emit);
        if (!made) return made.errors();
        input.emitted = kernels_of(made->code), input.derived = made->derived;
        return ChosenPlan{std::move(made->derived), std::move(made->plan), std::move(made->notes)};
    });
    if (!figures) return fail(figures.errors(), c.common);
    input.figures = std::move(figures).value();
    input.machines = machines_like(input.figures.machine);
    input.grid = draw::grid_of(input.request, input.figures, input.machines, input.wasm.empty(), planned);
    return write_output(c.output, draw::report_page(input), c.common);
}

}  // namespace

void add_report(CLI::App& app, Main& main) {
    const auto c = std::make_shared<ReportCommand>();
    Command command(app, main, "report",
                    "Write all that is known of a diagram on a machine as one page that stands by itself",
                    "napkin report examples/attention.nk --machine h100-sxm5 -o report.html", [c] { return report(*c); });
    command.file(c->common);
    command.text("-o,--output", "FILE", c->output, "Where to write (default: to stdout)");
    command.list("--measured", "FILE", c->measured,
                 "Runs to set beside the prediction: JSON of `napkin run` or of bench/results", false);
    command.text(
        "--wasm", "FILE", c->wasm,
        "The core as WebAssembly, with which sliders choose any setting; none: a grid of settings\n"
        "(default: napkin.wasm.gz beside the tool, or installed with it, where the target napkin-wasm was built)");
    command.sizes(c->common);
    command.derivation(c->common);
    command.plan(c->common);
}

}  // namespace napkin::cli
