// `napkin cost`: H, M and the number of groups in letters; on a machine in numbers, with what binds and what no sizes
// can beat.
#include <fmt/format.h>

#include "napkin/command.hpp"
#include "napkin/cost_compare.hpp"
#include "study/cost_study.hpp"
#include "study/count_levels.hpp"
#include "study/report.hpp"
#include "study/size_classes.hpp"

namespace napkin::cli {

namespace {

struct CostCommand {
    Options common;
    std::string types;
    double memory = 0, overhead = 0;
    std::int64_t cluster = 1, devices = 1;
    bool explain = false, count = false, closed_form = false;
    ManyOptions many;
};

Result<CostQuery> query_of(const CostCommand& c) {
    CostQuery query;
    auto source = read_source(c.common.file);
    if (!source) return source.errors();
    query.source = std::move(source).value();
    query.pipeline = pipeline_options(c.common, Pass::choose);
    if (const Status read = read_schedule(c.common, query.pipeline); !read) return read.errors();
    if (!c.types.empty()) query.pipeline.types = dtype_from_name(c.types);
    query.levels = {c.cluster, c.devices};
    if (c.memory > 0) query.memory_values = c.memory;
    query.special_overhead = c.overhead;
    query.closed_form = c.closed_form;
    query.explain = c.explain;
    return query;
}

/// What only the report of one diagram on one machine has.
void refuse_options_of_one(const CostCommand& c) {
    const char* option = c.explain        ? "--explain"
                         : c.memory > 0   ? "--memory"
                         : c.overhead > 0 ? "--special-overhead"
                         : c.count        ? "--count"
                                          : nullptr;
    if (option) throw UsageError(fmt::format("{} belongs to the report of one diagram on one machine", option));
}

ExitCode cost(const CostCommand& c) {
    auto query = query_of(c);
    if (!query) return fail(query.errors(), c.common);
    if (!c.many.against.empty() || !c.many.sweeps.empty() || machine_list(c.common.machine).size() > 1) {
        refuse_options_of_one(c);
        const AxisSizes sizes = std::move(query->pipeline.sizes);
        query->pipeline.sizes.clear();
        return cost_many(*query, sizes, c.many, c.common);
    }
    if (c.many.csv) throw UsageError("--csv writes a --sweep or several machines");
    // Sizes that are left open stay letters, and plans for all of them stand below.
    std::vector<std::string> open;
    const std::string machine = query->pipeline.machine;
    if (!machine.empty()) open = open_axes(query->source, query->pipeline);
    if (!open.empty()) query->pipeline.machine.clear();
    const auto study = study_cost(*query);
    if (!study) return fail(study.errors(), c.common);
    say_notes(study->compilation);
    std::optional<LevelCount> counted;
    if (c.count) {
        const Compilation& made = study->compilation;
        if (!study->summary) return fail(bind_sizes(made.diagram).errors(), c.common);
        auto count = count_levels(made.derived, made.extents, study->kernels, study->tiles);
        if (!count) return fail(count.errors(), c.common);
        counted = std::move(count).value();
    }
    report::Section out = report_of(*study);
    if (counted) out.add(report_of(*counted));
    if (!open.empty()) {
        query->pipeline.machine = machine;
        const auto classes = size_classes(query->source, query->pipeline, open);
        if (!classes) return fail(classes.errors(), c.common);
        report::Section part = report_of(*classes);
        part.path = "size_classes";
        out.text("\n");
        out.add(std::move(part));
    }
    print(out, "cost", c.common);
    return ExitCode::success;
}

}  // namespace

void add_cost(CLI::App& app, Main& main) {
    const auto c = std::make_shared<CostCommand>();
    Command command(app, main, "cost", "Count transfers H, memory M and groups; say what binds on a machine, and why",
                    "napkin cost examples/attention.nk --machine h100-sxm5 --explain\n"
                    "  napkin cost examples/attention.nk --machine all\n"
                    "  napkin cost examples/attention.nk --machine h100-sxm5 --against no-fuse\n"
                    "  napkin cost examples/attention.nk --machine h100-sxm5,h200 --sweep q=x=1024..65536 --csv",
                    [c] { return cost(*c); });
    command.file(c->common);
    command.sizes(c->common);
    command.text("--types", "TYPE", c->types, "Type of every array of floating point, in place of the text's",
                 {"f64", "f32", "tf32", "f16", "bf16", "e4m3", "e5m2"});
    command.derivation(c->common);
    command.plan(c->common);
    command.real("--memory", "VALUES", c->memory, 1, 1e18,
                 "M for H*, in values (default: what a core of the machine holds)");
    command.number("--cluster", c->cluster, 1, 1024, "Cores that exchange data among themselves (Theorem 3)");
    command.number("--devices", c->devices, 1, 1024, "Devices that share the work over their links (A.2.3)");
    command.real("--special-overhead", "SHARE", c->overhead, 0, 100,
                 "What special functions take beside their operations, as a share of them");
    command.flag("--count", c->count, "Move every value through every level, and put what is counted beside H and M");
    command.flag("--closed-form", c->closed_form,
                 "On a GPU, the sizes with the least time by the closed form, in place of those of the plan");
    command.flag("--explain", c->explain, "The derivation of every figure, with the numbers put in");
    command.list("--against", "SPEC", c->many.against,
                 "What to set beside it, commas between: a file, no-fuse, machine=NAME, types=TYPE, diagram=NAME,\n"
                 "set:AXIS=SIZE, devices=N, cluster=N, form=FORM; all else is the same on both sides",
                 false);
    command.list("--sweep", "AXIS=LO..HI", c->many.sweeps,
                 "Costs over sizes: powers of two (d=32..512), steps (d=32..512:32), factors (d=32..512:*4), a list\n"
                 "(d=32,48,96), tied axes (q=x=1024..65536); several give the product",
                 false);
    command.flag("--csv", c->many.csv, "A sweep, or several machines (--machine NAME,NAME or all), as CSV");
    command.output(c->common);
}

}  // namespace napkin::cli
