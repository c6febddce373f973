#include "napkin/named_drawing.hpp"

#include <fmt/format.h>

#include "diagram/hidden_axes.hpp"
#include "draw/drawings.hpp"
#include "draw/machine_steps.hpp"
#include "napkin/step_report.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

/// "sizes: q = 4096, x = 4096", where all are known.
std::vector<std::string> drawn_sizes(const Diagram& diagram, const std::map<std::string, std::int64_t>& given) {
    const auto extents = bind_sizes(diagram, given);
    if (!extents || diagram.axes.empty()) return {};
    std::vector<std::string> sizes;
    for (const AxisId a : axes_of_text(diagram))
        sizes.push_back(fmt::format("{} = {}", diagram.axes[a].name, (*extents)[a]));
    return {"sizes: " + join(sizes, ", ")};
}

/// The paper's steps, where a machine was named and a step is asked for that needs one.
Result<std::optional<StepReport>> drawn_steps(const Options& options, const std::string& wanted,
                                              const Compilation& compilation) {
    const bool is_needed = contains(draw::machine_step_names(), wanted) ||
                           (wanted == "all" && !options.machine.empty() && compilation.machine.kind == MachineKind::gpu);
    if (!is_needed) return std::optional<StepReport>();
    auto report = step_report(options, StepTexts::left_out);
    if (!report) return report.errors();
    return std::optional<StepReport>(std::move(report).value());
}

}  // namespace

Result<NamedDrawing> named_drawing(const Options& options, const std::string& step) {
    const bool on_machine = contains(draw::machine_step_names(), step);
    const auto compilation = compile(
        options, on_machine || (step == "all" && !options.machine.empty()) ? Pass::size : Pass::choose);
    if (!compilation) return compilation.errors();
    const auto steps = drawn_steps(options, step, *compilation);
    if (!steps) return steps.errors();
    draw::Subject subject{compilation->diagram, &compilation->derived, nullptr, "memory", {}};
    if (const auto& report = *steps) subject.steps = &*report;
    if (subject.steps && !compilation->machine.levels.empty())
        subject.memory = compilation->machine.levels.front().name;
    subject.notes = drawn_sizes(compilation->diagram, assignments(options.set, "--set"));
    const std::vector<draw::StepName> names = draw::step_names(subject);
    const auto is_step = [&](const draw::StepName& s) { return s.name == step; };
    if (step != "all" && none_of(names, is_step)) {
        std::vector<std::string> known;
        for (const draw::StepName& s : names)
            if (s.name.find_first_not_of("0123456789") != std::string::npos) known.push_back(s.name);
        throw UsageError(
            fmt::format("there is no step `{}`: expected 0 to {}, {}, all{}", step, compilation->derived.steps.size(),
                        join(known, ", "),
                        subject.steps ? "" : ", or on a GPU's --machine " + join(draw::machine_step_names(), ", ")));
    }
    return NamedDrawing{compilation->diagram.name, draw::drawing_of(subject, step)};
}

}  // namespace napkin::cli
