#include "napkin/chart_picture.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include "draw/configuration_chart.hpp"
#include "draw/hierarchy_chart.hpp"
#include "draw/layout_chart.hpp"
#include "draw/measured_chart.hpp"
#include "draw/overlap_chart.hpp"
#include "draw/roofline_chart.hpp"
#include "draw/sweep_chart.hpp"
#include "draw/tiles_chart.hpp"
#include "draw/transfers_chart.hpp"
#include "napkin/cost_compare.hpp"
#include "napkin/step_report.hpp"
#include "study/report.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

/// The one of these by its name, or the first where none is asked for. Errors: unknown-kernel.
template <class Kernel, class Name>
Result<const Kernel*> one_of(const std::vector<Kernel>& kernels, const std::string& asked, Name name) {
    std::vector<std::string> names;
    for (const Kernel& kernel : kernels) {
        if (asked.empty() || name(kernel) == asked) return &kernel;
        names.push_back(name(kernel));
    }
    return Diagnostic{.code = "unknown-kernel",
                      .range = {},
                      .message = asked.empty() ? "there is no kernel" : fmt::format("there is no kernel '{}'", asked),
                      .expected = names.empty() ? "" : "one of " + join(names, ", "),
                      .hint = did_you_mean(asked, names),
                      .notes = {}};
}

Result<CostStudy> study_of(const Options& options) {
    CostQuery query;
    auto source = read_source(options.file);
    if (!source) return source.errors();
    query.source = std::move(source).value();
    query.pipeline = pipeline_options(options, Pass::choose);
    if (const Status read = read_schedule(options, query.pipeline); !read) return read.errors();
    return study_cost(query);
}

/// Sizes are needed, and whoever has none is told which.
Result<CostStudy> sized_study(const Options& options) {
    auto study = study_of(options);
    if (!study || study->summary) return study;
    return bind_sizes(study->compilation.diagram).errors();
}

Result<std::vector<draw::MeasuredPoint>> read_measured(const std::vector<std::string>& files) {
    std::vector<draw::MeasuredPoint> out;
    for (const std::string& file : files) {
        const auto text = read_source(file);
        if (!text) return text.errors();
        const auto points = draw::measured_points(file, (*text)->text);
        if (!points) return points.errors();
        append(out, *points);
    }
    return out;
}

// ---- one function a chart ----

struct StepsKernel {
    StepReport report;
    std::size_t kernel = 0;
};
Result<StepsKernel> steps_kernel(const ChartRequest& c) {
    auto report = step_report(c.common);
    if (!report) return report.errors();
    const auto kernel = one_of(report->kernels, c.kernel, [](const KernelSteps& k) { return k.kernel; });
    if (!kernel) return kernel.errors();
    const auto index = static_cast<std::size_t>(*kernel - report->kernels.data());
    return StepsKernel{std::move(*report), index};
}

/// The chart of the kernel's first stream. Errors: no-stream.
Result<const StreamChart*> first_stream(const KernelSteps& kernel) {
    if (!kernel.charts.empty()) return &kernel.charts.front();
    return Diagnostic{
        .code = "no-stream",
        .range = {},
        .message = fmt::format("kernel {} streams nothing: there is no loop whose operations overlap", kernel.kernel),
        .expected = "a kernel with a stream",
        .hint = "",
        .notes = {}};
}

Result<svg::Document> draw_overlap(const ChartRequest& c) {
    const auto of = steps_kernel(c);
    if (!of) return of.errors();
    const KernelSteps& kernel = of->report.kernels[of->kernel];
    const auto stream = first_stream(kernel);
    if (!stream) return stream.errors();
    return draw::overlap_chart(**stream, of->report.axes[at((*stream)->stream)],
                               fmt::format("{} on {}", of->report.diagram, of->report.machine));
}

Result<svg::Document> draw_configuration(const ChartRequest& c) {
    const auto of = steps_kernel(c);
    if (!of) return of.errors();
    return draw::configuration_chart(of->report.kernels[of->kernel],
                                     fmt::format("{} on {}", of->report.diagram, of->report.machine));
}

Result<svg::Document> draw_roofline(const ChartRequest& c) {
    const auto measured = read_measured(c.measured);
    if (!measured) return measured.errors();
    if (c.common.file.empty()) {
        const auto machine = load_machine(c.common.machine);
        if (!machine) return machine.errors();
        return draw::roofline_chart(*machine, {}, *measured, "");
    }
    const auto study = sized_study(c.common);
    if (!study) return study.errors();
    return draw::roofline_chart(study->compilation.machine, study->kernels, *measured, study->compilation.diagram.name);
}

Result<svg::Document> draw_hierarchy(const ChartRequest& c) {
    const auto machine = load_machine(c.common.machine);
    if (!machine) return machine.errors();
    return draw::hierarchy_chart(*machine);
}

Result<svg::Document> draw_transfers(const ChartRequest& c) {
    const auto study = sized_study(c.common);
    if (!study) return study.errors();
    const std::vector<KernelFigures> kernels = cost_figures(study->compilation.derived, numbers_of(*study), study->tiles);
    const auto kernel = one_of(kernels, c.kernel, [](const KernelFigures& k) { return k.cost.kernel; });
    if (!kernel) return kernel.errors();
    return draw::transfers_chart(study->compilation.derived, **kernel, study->compilation.extents, study->memory_values,
                                 study->compilation.diagram.name);
}

Result<svg::Document> draw_tiles(const ChartRequest& c) {
    const auto study = sized_study(c.common);
    if (!study) return study.errors();
    const Derived& derived = study->compilation.derived;
    const auto kernel = one_of(derived.kernels, c.kernel, [](const Kernel& k) { return k.name; });
    if (!kernel) return kernel.errors();
    const auto numbers = numbers_of(*study);
    const auto index = static_cast<std::size_t>(*kernel - derived.kernels.data());
    return draw::tiles_chart(derived, **kernel, study->compilation.extents, numbers->sizes[index],
                             fmt::format("{} on {}", study->compilation.diagram.name, study->compilation.machine.name));
}

/// A group's tile as a whole, which warpgroups share and subloops go through.
Result<svg::Document> draw_inner_tiles(const ChartRequest& c) {
    const auto study = sized_study(c.common);
    if (!study) return study.errors();
    const auto of = steps_kernel(c);
    if (!of) return of.errors();
    const Derived& derived = study->compilation.derived;
    const KernelSteps& steps = of->report.kernels[of->kernel];
    const auto kernel = one_of(derived.kernels, steps.kernel, [](const Kernel& k) { return k.name; });
    if (!kernel) return kernel.errors();
    Extents tile = study->compilation.extents;
    TileSizes parts{ByAxis<std::int64_t>(tile.size(), 0), ByAxis<std::int64_t>(tile.size(), 0), {}};
    draw::TilesOf inner{"Parts of a tile", {}, "w", "u", "a warpgroup", "reads", "keeps"};
    for (const CutSize& size : steps.sizes) {
        if (size.letter == 'g' || size.letter == 's') {
            tile[size.axis] = size.size;
            inner.sides[size.axis] = to_string(size, of->report.axes);
        } else if (size.letter == 'w' || size.letter == 'u') {
            (size.letter == 'w' ? parts.group : parts.stream)[size.axis] = size.size;
        }
    }
    return draw::tiles_chart(derived, **kernel, tile, parts,
                             fmt::format("{} on {}", study->compilation.diagram.name, study->compilation.machine.name),
                             inner);
}

Result<svg::Document> draw_layout(const ChartRequest& c) {
    const auto layout = layouts::parse_held(c.common.file);
    if (!layout) return layout.errors();
    return draw::layout_chart(*layout, c.common.file, {c.value_bytes, c.banks, 4});
}

Result<svg::Document> draw_sweep(const ChartRequest& c) {
    if (c.sweeps.empty()) throw UsageError("chart sweep: over which sizes? --sweep d=32..512");
    std::vector<SweepAxis> axes;
    for (const std::string& text : c.sweeps) {
        auto axis = parse_sweep(text);
        if (!axis) return axis.errors();
        axes.push_back(std::move(*axis));
    }
    std::vector<Subject> subjects;
    const auto source = read_source(c.common.file);
    if (!source) return source.errors();
    AxisSizes sizes;
    for (const std::string& machine : machine_list(c.common.machine)) {
        CostQuery query{.source = *source, .pipeline = pipeline_options(c.common, Pass::choose)};
        query.pipeline.machine = machine;
        sizes = std::move(query.pipeline.sizes);
        query.pipeline.sizes.clear();
        subjects.push_back({machine, query, {}, {}});
    }
    auto made = make_subjects(std::move(subjects), sizes);
    if (!made) return made.errors();
    const auto swept = sweep(std::move(made).value(), axes);
    if (!swept) return swept.errors();
    return draw::sweep_chart(*swept);
}

Result<svg::Document> draw_measured(const ChartRequest& c) {
    std::vector<std::string> files = c.measured;
    files.insert(files.begin(), c.common.file);
    const auto points = read_measured(files);
    if (!points) return points.errors();
    return draw::measured_chart(*points, c.common.file);
}

struct NamedChart {
    const char* name;
    const char* of;  ///< what FILE is; empty: a machine alone is drawn
    Result<svg::Document> (*drawn)(const ChartRequest&);
};
constexpr NamedChart charts[] = {{"overlap", "a diagram", draw_overlap},
                                 {"configuration", "a diagram", draw_configuration},
                                 {"roofline", "a diagram, or nothing", draw_roofline},
                                 {"hierarchy", "", draw_hierarchy},
                                 {"transfers", "a diagram", draw_transfers},
                                 {"tiles", "a diagram", draw_tiles},
                                 {"inner-tiles", "a diagram", draw_inner_tiles},
                                 {"layout", "a layout", draw_layout},
                                 {"sweep", "a diagram", draw_sweep},
                                 {"measured", "a run's JSON", draw_measured}};

}  // namespace

Result<std::string> trace_text(const ChartRequest& c) {
    const auto of = steps_kernel(c);
    if (!of) return of.errors();
    const auto stream = first_stream(of->report.kernels[of->kernel]);
    if (!stream) return stream.errors();
    const auto machine = load_machine(of->report.machine);
    return json_text(draw::overlap_trace(**stream, of->report.axes[at((*stream)->stream)],
                                         machine ? machine->clock_hz.value : 0)) +
           "\n";
}

std::vector<std::string> chart_names() {
    std::vector<std::string> out;
    for (const NamedChart& chart : charts) out.emplace_back(chart.name);
    return out;
}

Result<svg::Document> chart_picture(const ChartRequest& c) {
    for (const NamedChart& of : charts) {
        if (of.name != c.name) continue;
        const std::string what = of.of;
        if (c.common.file.empty() && !what.empty() && what.find("nothing") == std::string::npos)
            throw UsageError(fmt::format("chart {}: of what? FILE is {}", c.name, what));
        if (!c.common.file.empty() && what.empty())
            throw UsageError(fmt::format("chart {}: draws a machine; --machine says which, and there is no FILE", c.name));
        return of.drawn(c);
    }
    const std::vector<std::string> names = chart_names();
    const std::string near = nearest_name(c.name, names);
    throw UsageError(fmt::format("there is no chart '{}'{}; expected one of {}", c.name,
                                 near.empty() ? "" : fmt::format(" (did you mean {}?)", near), join(names, ", ")));
}

}  // namespace napkin::cli
