#include "derive/derive.hpp"

#include <fmt/format.h>

#include <optional>

#include "derive/array_types.hpp"
#include "derive/flat_stream.hpp"
#include "derive/gather.hpp"
#include "derive/kernel_forms.hpp"
#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "diagram/flat_axes.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
Diagnostic problem(const char* code, const SourceRange& range, std::string message, std::string expected, std::string hint) {
    return Diagnostic{
        .code = code, .range = range, .message = std::move(message), .expected = std::move(expected), .hint = std::move(hint)};
}

}  // namespace

Diagram Derived::diagram_without_kernel_arrays() const {
    Diagram out = diagram;
    while (!out.arrays.empty() && out.arrays.back().role != ArrayRole::input &&
           !out.definition(ArrayId::of(out.arrays.size() - 1)))
        out.arrays.pop_back();
    return out;
}

Result<Derived> derive(const Diagram& diagram, const DeriveOptions& options) {
    std::vector<Diagnostic> errors;
    Derived derived;
    derived.form = options.form;
    derived.rewriting = options.rewriting;
    const bool is_rewritten = options.fuse && options.kernels.empty();
    derived.source = is_rewritten ? with_sizes_of_joined_dimensions(diagram) : diagram;
    Diagram normal = derived.source;
    for (const std::string& name : options.stream) normal.schedule.push_back({ChoiceKind::stream, name, {}});
    if (is_rewritten) normal = normal_form(normal, options.rewriting, derived.normal_steps);
    normal.schedule = derived.source.schedule;
    std::vector<AxisId> demanded;
    const auto demand = [&](const std::string& axis_name, const SourceRange& range) {
        const auto axis = normal.find_axis(axis_name);
        if (!axis) {
            errors.push_back(problem("unknown-axis", range, fmt::format("no axis '{}' in {}", axis_name, diagram.name),
                                     "an axis to stream", did_you_mean(axis_name, names_of(diagram.axes))));
            return;
        }
        const auto is_reduced_in = [&](const Diagram& d) {
            return any_of(d.equations, [&](const Equation& e) { return contains(e.reduce_axes, *axis); });
        };
        if (!is_reduced_in(diagram) && !is_reduced_in(normal) && !contains(flat_axes_of(normal, normal.equations), *axis)) {
            std::vector<std::string> reducible;
            for (const auto& e : diagram.equations)
                for (const AxisId a : e.reduce_axes)
                    if (const auto& n = diagram.axis(a).name; !contains(reducible, n)) reducible.push_back(n);
            errors.push_back(problem("not-streamable", range,
                                     fmt::format("'{}' cannot be streamed: no reduction consumes it", axis_name),
                                     "an axis under a reduction", fmt::format("{}", fmt::join(reducible, ", "))));
            return;
        }
        demanded.push_back(*axis);
    };
    for (const auto& name : options.stream) demand(name, diagram.range);
    for (const auto& item : diagram.schedule) {
        // What is said of one kernel is about a form of it, which is chosen among all that there are.
        if (item.kind == ChoiceKind::stream && item.kernel.empty()) demand(item.axis, item.range);
        if (item.kind == ChoiceKind::form) {
            if (item.word == "auxiliary") {
                derived.form = Form::auxiliary;
            } else if (item.word != "unscaled") {
                errors.push_back(problem("unknown-form", item.range, fmt::format("no form '{}'", item.word),
                                         "unscaled or auxiliary", ""));
            }
        }
    }
    if (!errors.empty()) return errors;
    derived.keeps_streams = !demanded.empty(), derived.keeps_kernels = !is_rewritten;
    KernelBuilder builder(normal, derived.form);
    derived.regions = gather(builder, {options.fuse, options.kernels, std::move(demanded)}, derived.normal_refusals);
    build_kernels(derived, builder);
    return derived;
}

std::optional<Derived> rewritten(const Derived& derived, const Rewriting& rewriting) {
    if (derived.keeps_kernels || rewriting == derived.rewriting ||
        (rewriting.flat_rows && flat_rows(derived.source).empty()))
        return std::nullopt;
    DeriveOptions options;
    options.form = derived.form;
    options.rewriting = rewriting;
    auto other = derive(derived.source, options);
    if (!other || other->diagram.equations == derived.diagram.equations) return std::nullopt;
    return std::move(*other);
}

}  // namespace napkin
