#include "derive/derive.hpp"

#include <fmt/format.h>

#include <limits>
#include <mutex>
#include <optional>

#include "derive/array_types.hpp"
#include "derive/flat_stream.hpp"
#include "derive/gather.hpp"
#include "derive/kernel_forms.hpp"
#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "diagram/flat_axes.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
/// The alternative of least cost, judged one after the other, whatever the order in which their costs become known.
class LeastInTurn {
public:
    LeastInTurn(std::size_t alternatives, double least_gain) : costs_(alternatives), least_gain_(least_gain) {}

    /// A cost that none of those whose turn is still to come is taken at. It only falls: who asks early may hear of
    /// more than is needed.
    [[nodiscard]] double enough() const {
        const std::lock_guard lock(mutex_);
        return enough_;
    }
    /// What the alternative costs, or anything that is not less than what was enough.
    void found(std::size_t alternative, double cost) {
        const std::lock_guard lock(mutex_);
        costs_[alternative] = cost;
        for (; judged_ < costs_.size() && costs_[judged_]; ++judged_) {
            const double next = *costs_[judged_];
            if (judged_ > 0 && !(next < enough_)) continue;
            enough_ = next * (1 - least_gain_);
            best_ = judged_;
        }
    }
    [[nodiscard]] std::size_t best() const {
        const std::lock_guard lock(mutex_);
        return best_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::optional<double>> costs_;
    double least_gain_, enough_ = std::numeric_limits<double>::infinity();
    std::size_t judged_ = 0, best_ = 0;
};

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
    derived.flat_rows = options.flat_rows;
    const bool is_rewritten = options.fuse && options.kernels.empty();
    derived.source = is_rewritten ? with_sizes_of_joined_dimensions(diagram) : diagram;
    Diagram normal = derived.source;
    for (const std::string& name : options.stream) normal.schedule.push_back({ChoiceKind::stream, name, {}});
    if (is_rewritten) normal = normal_form(normal, options.flat_rows, derived.normal_steps);
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

std::optional<Derived> with_flat_rows(const Derived& derived) {
    if (derived.flat_rows || flat_rows(derived.source).empty()) return std::nullopt;
    DeriveOptions options;
    options.form = derived.form;
    options.flat_rows = true;
    auto flat = derive(derived.source, options);
    return flat ? std::optional(std::move(*flat)) : std::nullopt;
}

Derived with_least_cost(const Derived& derived, const std::function<double(const Derived&, double)>& cost,
                        std::size_t threads, double least_gain, const std::function<double(const Derived&)>& mismatch) {
    std::vector<std::size_t> chosen;
    bool changed = false;
    const KernelForms forms(derived);
    for (const Region& region : derived.regions) {
        if (region.alternatives.size() < 2) {
            chosen.push_back(0);
        } else {
            const auto built = [&](std::size_t i) { return forms.of(region.alternatives[i].kernels); };
            std::vector<std::size_t> fitting(region.alternatives.size());
            iota(fitting, std::size_t{0});
            if (mismatch) {
                const auto mismatches = mapped<double>(fitting, [&](std::size_t i) { return mismatch(built(i)); });
                std::erase_if(fitting, [&](std::size_t i) { return mismatches[i] > *min_element(mismatches); });
            }
            LeastInTurn least(fitting.size(), least_gain);
            share_out(
                fitting.size() == 1 ? 0 : fitting.size(),
                [&](std::size_t i) {
                    const double enough = least.enough();
                    least.found(i, cost(built(fitting[i]), enough));
                },
                threads);
            chosen.push_back(fitting[least.best()]);
        }
        changed = changed || chosen.back() != region.chosen;
    }
    return changed ? rederive(derived, chosen) : derived;
}

}  // namespace napkin
