#include <fmt/format.h>

#include <cmath>

#include "cost/divisors.hpp"
#include "cost/on_machine.hpp"
#include "plan/overrides.hpp"
#include "steps/choices.hpp"
#include "steps/made_steps.hpp"
#include "steps/tell.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

class Stepper {
public:
    Stepper(const Derived& derived, const Extents& extents, const Machine& machine,
            const std::vector<ScheduleItem>& items, StepTexts texts)
        : derived_(derived),
          extents_(extents),
          machine_(machine),
          items_(items),
          texts_(texts),
          maker_(derived.diagram, extents, machine) {}

    Result<StepReport> run() {
        StepReport report{derived_.diagram.name, machine_.name, names_of(derived_.diagram.axes), {}};
        if (machine_.kind != MachineKind::gpu || !machine_.threads)
            return Diagnostic{
                .code = "not-a-gpu",
                .range = {},
                .message = fmt::format("the steps assign work to the threads of a GPU, and {} is none", machine_.name),
                .expected = "a GPU's machine",
                .hint = "--machine h100-sxm5"};
        // Sizes are judged as plans judge them; what the steps alone know is judged here.
        std::vector<ScheduleItem> sizes;
        for (const ScheduleItem& item : items_)
            if ((item.kind == ChoiceKind::group || item.kind == ChoiceKind::stream) && item.kernel.empty())
                sizes.push_back(item);
        const auto hand = checked_overrides(derived_, extents_, sizes);
        if (!hand) return hand.errors();
        std::vector<Diagnostic> errors = unknown_kernels();
        if (!errors.empty()) return errors;
        for (std::size_t k = 0; k < derived_.kernels.size(); ++k) {
            auto kernel = steps_of(k, *hand);
            if (kernel)
                report.kernels.push_back(std::move(kernel).value());
            else
                append(errors, kernel.errors());
        }
        if (!errors.empty()) return errors;
        report.of = derived_.diagram;
        return report;
    }

private:
    [[nodiscard]] std::vector<Diagnostic> unknown_kernels() const {
        std::vector<Diagnostic> out;
        const std::vector<std::string> names = names_of(derived_.kernels);
        for (const ScheduleItem& item : items_)
            if (!item.kernel.empty() && !contains(names, item.kernel))
                out.push_back({.code = "unknown-kernel",
                               .range = item.range,
                               .message = fmt::format("there is no kernel '{}'", item.kernel),
                               .expected = "one of " + join(names, ", "),
                               .hint = did_you_mean(item.kernel, names)});
        return out;
    }
    /// The sizes of all kernels, and those of this one alone, which are judged by its axes.
    Result<Overrides> with_own(const Overrides& all, const Kernel& kernel) const {
        std::vector<ScheduleItem> own;
        for (const ScheduleItem& item : items_)
            if ((item.kind == ChoiceKind::group || item.kind == ChoiceKind::stream) && item.kernel == kernel.name)
                own.push_back(item);
        Derived alone = derived_;
        alone.kernels = {kernel};
        auto hand = checked_overrides(alone, extents_, own);
        if (!hand) return hand.errors();
        Overrides out = all;
        out.take_over(*hand);
        return out;
    }

    /// By hand; else those that the closed form finds fastest, which the configuration may find too large.
    Result<TileSizes> tile_sizes(const Kernel& kernel, const Overrides& hand, const StepChoices& choices) const {
        TileSizes sizes{Extents(extents_.size(), 0), Extents(extents_.size(), 0), Extents(extents_.size(), 0)};
        MachineCostOptions options;
        options.whole = true;
        bool is_open = false;
        const auto take = [&](AxisId axis, const std::map<AxisId, ScheduleItem>& by_user, std::vector<std::int64_t>& to,
                              std::map<AxisId, std::int64_t>& known) {
            const auto item = by_user.find(axis);
            item == by_user.end() ? void(is_open = true) : void(known[axis] = to[at(axis)] = *item->second.value);
        };
        std::vector<AxisId> streams;
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) streams.push_back(loop->axis);
        for (const AxisId axis : streams) take(axis, hand.of(ChoiceKind::stream), sizes.stream, options.stream);
        const bool has_group = any_of(kernel.group_axes, [&](AxisId axis) { return hand.fixes(ChoiceKind::group, axis); });
        for (const AxisId axis : kernel.group_axes) {
            // Beside groups by hand, an axis whose groups would repeat each other's work runs whole.
            if (has_group && contains(kernel.recompute_axes, axis) && !hand.fixes(ChoiceKind::group, axis))
                options.group[axis] = extents_[axis];
            else
                take(axis, hand.of(ChoiceKind::group), sizes.group, options.group);
        }
        if (is_open) {
            auto cost = cost_on_machine(derived_, kernel, extents_, machine_, options);
            // What fits a core is asked of the configuration alone, which knows what its levels hold.
            if (!cost) options.planned = true, cost = cost_on_machine(derived_, kernel, extents_, machine_, options);
            if (!cost) return cost.errors();
            for (const auto& [axis, size] : cost->group)
                if (contains(kernel.group_axes, axis) && !options.group.contains(axis)) sizes.group[axis] = size;
            for (const auto& [axis, size] : cost->stream)
                if (contains(streams, axis) && !options.stream.contains(axis)) sizes.stream[axis] = size;
        }
        for (const auto& [axis, part] : choices.subloop) {
            sizes.sub[axis] = part.value;
            // A chunk that is open has whole parts.
            if (std::int64_t& chunk = sizes.stream[axis]; chunk > 0 && !options.stream.contains(axis))
                chunk = std::min(extents_[axis], round_up(chunk, part.value));
        }
        return sizes;
    }

    /// A line beside no kernel's name is for those that have what it names; where none has, for all, which refuse it.
    [[nodiscard]] bool is_for(const ScheduleItem& item, std::size_t k, const TileProgram& expanded) const {
        if (has_what_is_named(item, k, expanded.kernels[k])) return true;
        for (std::size_t other = 0; other < derived_.kernels.size(); ++other)
            if (has_what_is_named(item, other, expanded.kernels[other])) return false;
        return true;
    }
    [[nodiscard]] bool has_what_is_named(const ScheduleItem& item, std::size_t k, const TileKernel& expanded) const {
        const auto axis = derived_.diagram.find_axis(item.axis);
        const auto names = [&] { return names_of(assign_levels(derived_.diagram, expanded, machine_).kernel.variables); };
        switch (item.kind) {
            case ChoiceKind::subloop:
                return axis && contains(axes_of_subloops(statement_work(derived_.diagram, expanded)), *axis);
            case ChoiceKind::warpgroup: return axis && contains(derived_.kernels[k].group_axes, *axis);
            case ChoiceKind::precision:
            case ChoiceKind::piece:
            case ChoiceKind::storage: return contains(names(), item.axis);
            case ChoiceKind::issue:
            case ChoiceKind::turns:
                return any_of(item.clauses, [&, own = names()](const ScheduleClause& c) { return contains(own, c.word); });
            default: return true;
        }
    }

    Result<KernelSteps> steps_of(std::size_t k, const Overrides& all) const {
        const Kernel& kernel = derived_.kernels[k];
        const auto own = with_own(all, kernel);
        if (!own) return own.errors();
        const Overrides& hand = *own;
        const TileProgram expanded = expand(derived_);
        std::vector<ScheduleItem> items;
        for (const ScheduleItem& item : items_)
            if (item.kernel == kernel.name || (item.kernel.empty() && is_for(item, k, expanded))) items.push_back(item);
        auto choices = step_choices(derived_.diagram, machine_, items);
        if (!choices) return choices.errors();
        auto sizes = tile_sizes(kernel, hand, *choices);
        if (!sizes) return sizes.errors();
        StepSubject subject{.kernel = kernel,
                            .expanded = expanded.kernels[k],
                            .items = items,
                            .work = statement_work(derived_.diagram, expanded.kernels[k]),
                            .structures = {}};
        auto made = maker_.made_keeping_divisors(subject, *choices, *sizes);
        if (!made) return with_nearest(made.errors(), subject, *choices, *sizes);
        KernelSteps out = std::move(made->steps);
        auto charts = overlap_charts(made->context, made->choices, made->assigned, out);
        if (!charts) return charts.errors();
        out.charts = std::move(charts).value();
        if (made->stream_clocks > 0) out.steady = steady_state(made->context, made->assigned, out, made->stream_clocks);
        out.instructions = instructions_of(made->assigned, made->structure->work);
        out.schedule = schedule_of(made->context, made->choices, made->assigned, out);
        if (texts_ == StepTexts::tried)
            out.steps = narrated_steps(derived_, expanded, k, made->structure->cut, made->context, made->assigned, out);
        for (std::size_t v = 0; v < made->assigned.variables.size(); ++v)
            out.cuts.push_back(made->context.cuts_of(made->assigned, VariableId::of(v), made->choices));
        out.expanded = expanded.kernels[k], out.in_parts = made->structure->in_parts;
        out.assigned = std::move(made->assigned);
        return out;
    }

    /// Where sizes by hand take too much: the largest group, else the longest chunk, else both, with which all that is
    /// asked for besides fits.
    std::vector<Diagnostic> with_nearest(std::vector<Diagnostic> errors, StepSubject& subject,
                                         const StepChoices& choices, const TileSizes& sizes) const {
        if (!takes_too_much(errors)) return errors;
        const StepContext context = maker_.context_of(subject, choices, sizes);
        constexpr std::int64_t most_tried = 64, product_step = 16;
        // Smaller groups, largest first; chunks, longest first: what there is of each as a line of a schedule.
        std::vector<std::pair<TileSizes, std::string>> groups, chunks;
        const auto line = [&](const char* kind, AxisId axis, std::int64_t size) {
            return fmt::format("{} {} = {}", kind, derived_.diagram.axis(axis).name, size);
        };
        for (const auto& [axis, share] : context.warpgroup)
            if (choices.group.contains(axis))
                for (std::int64_t n = std::min(most_tried, (sizes.group[axis] - 1) / share); n >= 1; --n) {
                    groups.emplace_back(sizes, line("group", axis, n * share));
                    groups.back().first.group[axis] = n * share;
                }
        for (const auto& [axis, range] : choices.stream)
            for (std::int64_t half = sizes.stream[axis] / 2; half >= 1; half /= 2) {
                const std::int64_t chunk = half >= product_step ? half / product_step * product_step : half;
                chunks.emplace_back(sizes, line("stream", axis, chunk));
                chunks.back().first.stream[axis] = chunk;
            }
        std::string nearest;
        const auto try_all = [&](const std::vector<std::pair<TileSizes, std::string>>& all) {
            for (const auto& [other, text] : all)
                if (nearest.empty() && maker_.made_smaller(subject, choices, other, false).ok()) nearest = text;
        };
        try_all(groups);
        if (nearest.empty()) try_all(chunks);
        for (const auto& [smaller, text] : groups) {
            if (!nearest.empty()) break;
            std::vector<std::pair<TileSizes, std::string>> both;
            for (const auto& [shorter, of_chunk] : chunks) {
                both.emplace_back(smaller, text + ", " + of_chunk);
                both.back().first.stream = shorter.stream;
            }
            try_all(both);
        }
        for (Diagnostic& error : errors)
            if (!nearest.empty()) error.hint = "the nearest legal choice is " + nearest;
        return errors;
    }

    [[nodiscard]] std::vector<std::string> instructions_of(const Assigned& assigned,
                                                           const std::vector<StatementWork>& work) const {
        std::vector<std::string> out;
        for (const StatementWork& w : work) {
            const bool multiplied = any_of(assigned.variables, [&](const AssignedVariable& v) {
                const auto id = VariableId::of(&v - assigned.variables.data());
                return v.at == HeldAt::fragments && assigned.kernel.variables[id].array == w.target;
            });
            const Instruction* i = w.contraction && multiplied ? instruction_for(machine_, w.contraction->type) : nullptr;
            std::string text = i ? fmt::format("{} {}", i->name, name(w.contraction->type)) : "";
            if (i && !contains(out, text)) out.push_back(std::move(text));
        }
        return out;
    }

    const Derived& derived_;
    const Extents& extents_;
    const Machine& machine_;
    const std::vector<ScheduleItem>& items_;
    StepTexts texts_;
    StepMaker maker_;
};

}  // namespace

Result<StepReport> paper_steps(const Derived& derived, const Extents& extents, const Machine& machine,
                               const std::vector<ScheduleItem>& items, StepTexts texts) {
    return Stepper(derived, extents, machine, items, texts).run();
}

}  // namespace napkin
