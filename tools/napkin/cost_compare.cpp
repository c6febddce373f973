// `napkin cost` on several things: sides of a comparison, points of a sweep, machines.
#include "napkin/cost_compare.hpp"

#include <fmt/format.h>

#include "machine/measured.hpp"
#include "study/report.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {
template <class T>
ExitCode show(const Result<T>& result, const char* schema, const ManyOptions& many, const Options& common) {
    if (!result) return fail(result.errors(), common);
    print(report_of(*result), schema, common, many.csv);
    return ExitCode::success;
}

Result<std::vector<Subject>> subjects_of(const CostQuery& query, const AxisSizes& sizes, const ManyOptions& many) {
    const std::vector<std::string> machines = machine_list(query.pipeline.machine);
    if (many.against.empty()) {
        std::vector<Subject> subjects;
        for (const std::string& machine : machines) {
            subjects.push_back({machine, query, {}, {}});
            subjects.back().query.pipeline.machine = machine;
        }
        return make_subjects(std::move(subjects), sizes);
    }
    if (machines.size() > 1) throw UsageError("--against sets one machine beside another; --machine names several");
    const auto against = parse_against(join(many.against, ","));
    if (!against) return against.errors();
    std::shared_ptr<const Source> other;
    if (!against->file.empty()) {
        auto source = read_source(against->file);
        if (!source) return source.errors();
        other = std::move(source).value();
    }
    CostQuery left = query;
    left.pipeline.machine = machines.front();
    return sides(left, sizes, *against, other);
}

}  // namespace

std::vector<std::string> machine_list(const std::string& machine) {
    std::vector<std::string> out;
    const auto add = [&](const std::string& name) {
        if (name.empty()) throw UsageError(fmt::format("--machine {}: a name is missing between the commas", machine));
        if (!contains(out, name)) out.push_back(name);
    };
    if (machine.empty()) return {default_machine()};
    for (std::size_t begin = 0; begin <= machine.size();) {
        const std::size_t end = std::min(machine.find(',', begin), machine.size());
        const std::string name = machine.substr(begin, end - begin);
        begin = end + 1;
        if (name != "all") {
            add(name);
            continue;
        }
        for (const std::string& known : machine_names())
            if (known != "host") add(known);
    }
    return out;
}

ExitCode cost_many(const CostQuery& query, const AxisSizes& sizes, const ManyOptions& many, const Options& common) {
    if (many.csv && common.json) throw UsageError("--csv and --json: one of them");
    const bool sweeps = !many.sweeps.empty();
    if (many.csv && !sweeps && !many.against.empty())
        throw UsageError("--csv writes a --sweep or several machines; --against alone has --json");
    std::vector<SweepAxis> axes;
    std::vector<Diagnostic> errors;
    for (const std::string& text : many.sweeps) {
        auto axis = parse_sweep(text);
        if (axis)
            axes.push_back(*axis);
        else
            append(errors, axis.errors());
    }
    if (!errors.empty()) return fail(errors, common);
    auto subjects = subjects_of(query, sizes, many);
    if (!subjects) return fail(subjects.errors(), common);
    if (sweeps) return show(sweep(std::move(subjects).value(), axes), "sweep", many, common);
    if (!many.against.empty()) return show(compare(std::move(subjects).value()), "compare", many, common);
    return show(rank(std::move(subjects).value()), "ranking", many, common);
}

}  // namespace napkin::cli
