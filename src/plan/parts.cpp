#include "plan/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cost/compulsory.hpp"
#include "derive/parts.hpp"
#include "plan/moves.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// Parts are considered where unequal numbers of groups on the cores make a kernel take longer by this factor.
constexpr double idle_cores = 1.1;

/// The axis that a kernel streams; -1: none.
AxisId streamed_axis(const Kernel& kernel) {
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) return loop->axis;
    return -1;
}

bool names_kernel(const std::vector<ScheduleItem>& items, const std::string& kernel) {
    return any_of(items, [&](const ScheduleItem& item) { return item.kernel == kernel; });
}

Diagnostic refused(std::string code, SourceRange range, std::string message, std::string expected, std::string hint) {
    return {std::move(code),    std::move(range), std::move(message), std::move(expected), std::move(hint), {},
            ExitCode::bad_input};
}

/// Whether the split is meant for the kernel. It names the kernel, or one of those that the kernel's parts make. Beside
/// no kernel's name, it names the streamed axis.
bool is_meant(const Derived& derived, std::size_t k, const ScheduleItem& split) {
    const Kernel& kernel = derived.kernels[k];
    if (split.kernel.empty()) {
        const AxisId axis = streamed_axis(kernel);
        return axis >= 0 && derived.diagram.axis(axis).name == split.axis;
    }
    if (split.kernel == kernel.name) return true;
    return split.value.value_or(1) > 1 && is_of_parts(derived, k, split.kernel);
}

/// The last split that is meant for the kernel. One beside the kernel's name goes before one for all kernels.
Result<std::optional<ScheduleItem>> split_of(const Derived& derived, const Extents& extents, std::size_t k,
                                             const std::vector<ScheduleItem>& items) {
    std::optional<ScheduleItem> out;
    for (const ScheduleItem& item : items) {
        if (item.kind != ChoiceKind::split || !is_meant(derived, k, item)) continue;
        const bool is_named = !item.kernel.empty(), was_named = out && !out->kernel.empty();
        if (was_named && !is_named) continue;
        if (is_named) {
            Derived alone = derived;
            alone.kernels = {derived.kernels[k]};
            if (const auto legal = checked_overrides(alone, extents, {item}); !legal) return legal.errors();
        }
        if (is_named && was_named && out->value != item.value)
            return refused("duplicate-schedule", item.range,
                           fmt::format("the stream of kernel {} is cut in {} parts and in {}", derived.kernels[k].name,
                                       *out->value, *item.value),
                           "one number for the kernels that share a stream", "");
        out = item;
    }
    return out;
}

/// Seconds of all kernels of the form, infinite where one has no plan, or as soon as the planned ones take
/// `enough` with the least starts of the others.
double seconds_kernel_by_kernel(const Derived& form, const Extents& extents, const Machine& machine,
                                PlanOptions options, const Planner& planner, double enough) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double seconds = 0;
    for (std::size_t k = 0; k < form.kernels.size(); ++k) {
        const double others = static_cast<double>(form.kernels.size() - k - 1) * least_seconds_to_start(machine);
        if (seconds + others >= enough) return infinity;
        options.only = {k};
        options.useless = enough - seconds - others;
        const auto plan = planner(form, extents, options);
        if (!plan) return infinity;
        seconds += plan->seconds();
    }
    return seconds;
}

}  // namespace

bool is_of_parts(const Derived& derived, std::size_t kernel, const std::string& name) {
    const Parted cut = with_parts(derived, kernel, 2);
    if (!cut.form) return false;
    const auto begin = cut.form->kernels.begin() + static_cast<std::ptrdiff_t>(kernel);
    return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(cut.num_kernels),
                       [&](const Kernel& part) { return part.name == name; });
}

Cut cut_streams(const Derived& derived, const Extents& extents, const std::vector<std::int64_t>& parts) {
    Cut cut{derived, extents, {}};
    std::size_t k = 0;
    for (std::size_t whole = 0; whole < parts.size(); ++whole) {
        std::size_t num_kernels = 1;
        if (parts[whole] > 1)
            if (Parted made = with_parts(cut.form, k, parts[whole]); made.form)
                cut.form = std::move(*made.form), num_kernels = made.num_kernels;
        cut.whole.insert(cut.whole.end(), num_kernels, whole);
        k += num_kernels;
    }
    cut.extents = with_part_extents(cut.form, extents);
    return cut;
}

bool may_gain_by_parts(const KernelPlan& kernel, const Machine& machine, std::int64_t cores, double enough) {
    const bool idles = kernel.time.groups < cores || kernel.time.waves > idle_cores;
    const double even_share = (kernel.time.seconds - kernel.time.launch_seconds) / static_cast<double>(cores);
    return idles && even_share + machine.launch_s.value + least_seconds_to_start(machine) < enough;
}

Result<std::vector<std::optional<Choice>>> parts_by_user(const Derived& derived, const Extents& extents,
                                                         const std::vector<ScheduleItem>& items) {
    std::vector<std::optional<Choice>> out(derived.kernels.size());
    std::vector<std::vector<ScheduleItem>> places;  // the text, options, a file
    for (const ScheduleItem& item : items) {
        if (places.empty() || places.back().back().range.source != item.range.source) places.emplace_back();
        places.back().push_back(item);
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
        SourceRange range;
        for (const std::vector<ScheduleItem>& said : places) {
            const auto split = split_of(derived, extents, k, said);
            if (!split) return split.errors();
            if (split->has_value()) out[k] = Choice{*(*split)->value, "", true}, range = (*split)->range;
            // Items that name the kernel without a split mean it as it is.
            else if (names_kernel(said, derived.kernels[k].name))
                out[k] = Choice{1, "", true};
        }
        if (!out[k] || out[k]->value < 2) continue;
        if (const Parted cut = with_parts(derived, k, out[k]->value); !cut.form)
            return refused("no-split", range,
                           fmt::format("the stream of kernel {} cannot be cut: {}", derived.kernels[k].name, cut.refusal),
                           "a kernel whose running results have a merge", "leave 'split' out");
    }
    return out;
}

Result<Plan> plan_in_parts(const Derived& derived, const Extents& extents, const Machine& machine, std::int64_t cores,
                           const std::vector<std::optional<Choice>>& by_user, const PlanOptions& options,
                           const Planner& planner) {
    std::vector<std::optional<Choice>> parts = by_user;
    const auto planned = [&]() -> Result<Plan> {
        auto numbers = mapped<std::int64_t>(parts, [&](const auto& part) { return part ? part->value : 1; });
        const Cut cut = cut_streams(derived, extents, numbers);
        PlanOptions of_cut = options;
        of_cut.cut = numbers;
        of_cut.only.clear();
        for (std::size_t k = 0; k < cut.whole.size(); ++k)
            if (options.only.empty() || contains(options.only, cut.whole[k])) of_cut.only.push_back(k);
        auto plan = planner(cut.form, cut.extents, of_cut);
        if (!plan) return plan;
        plan->change.parts = std::move(numbers);
        for (std::size_t k = 0; k < plan->kernels.size(); ++k) {
            KernelPlan& kernel = plan->kernels[k];
            kernel.whole = cut.whole[of_cut.only[k]];
            if (kernel.scheduled.kernel->parts.any()) kernel.scheduled.schedule.split = *parts[kernel.whole];
        }
        return plan;
    };
    auto best = planned();
    if (!best || cores < 2) return best;

    PlanOptions quick = options;
    quick.quick = true;
    quick.completion = Completion::for_estimate;
    quick.only.clear();
    bool any = false;
    const std::vector<KernelPlan> kernels = best->kernels;
    for (const KernelPlan& kernel : kernels) {
        const std::size_t k = kernel.whole;
        const std::int64_t groups = kernel.time.groups;
        const AxisId axis = streamed_axis(derived.kernels[k]);
        const double whole = kernel.time.seconds;
        double enough = options.enough;
        if (parts[k] || axis < 0 || kernel.is_bound) continue;
        Derived alone = derived;
        alone.kernels = {derived.kernels[k]};
        const AtGroups at{groups, cores};
        for (const PartMove& move : part_moves()) {
            const std::int64_t n = move.when(at) ? move.apply(at) : 1;
            const double least = std::min(move.worth * whole, enough);
            if (n < 2 || n > extents[axis] || !may_gain_by_parts(kernel, machine, cores, least)) continue;
            const Parted cut = with_parts(alone, 0, n);
            if (!cut.form) break;
            // A form of this kernel alone. Numbers of parts of all kernels are never below 1.
            quick.cut = {-1, static_cast<std::int64_t>(k), n};
            const double seconds = seconds_kernel_by_kernel(*cut.form, with_part_extents(*cut.form, extents), machine,
                                                            quick, planner, least);
            if (seconds >= least) continue;
            enough = seconds;
            parts[k] = Choice{n,
                              fmt::format("{} group{} for {} cores: {} with the merge, {} whole", groups,
                                          groups == 1 ? "" : "s", cores, seconds_text(seconds), seconds_text(whole)),
                              false};
            any = true;
        }
    }
    return any ? planned() : std::move(best);
}

}  // namespace napkin
