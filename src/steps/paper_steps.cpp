#include <fmt/format.h>

#include <algorithm>

#include "cost/divisors.hpp"
#include "cost/on_machine.hpp"
#include "plan/by_hand.hpp"
#include "steps/choices.hpp"
#include "steps/tell.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

class Stepper {
public:
    Stepper(const Derived& derived, const Extents& extents, const Machine& machine,
            const std::vector<ScheduleItem>& items, StepTexts texts)
        : derived_(derived), extents_(extents), machine_(machine), items_(items), texts_(texts) {}

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
            if (item.kind == "group" || item.kind == "stream") sizes.push_back(item);
        const auto hand = hand_choices(derived_, extents_, sizes);
        if (!hand) return hand.errors();
        std::vector<Diagnostic> errors;
        for (std::size_t k = 0; k < derived_.kernels.size(); ++k) {
            auto kernel = steps_of(k, *hand);
            if (kernel)
                report.kernels.push_back(std::move(kernel).value());
            else
                errors.insert(errors.end(), kernel.errors().begin(), kernel.errors().end());
        }
        if (!errors.empty()) return errors;
        return report;
    }

private:
    /// By hand; else the sizes that the model finds fastest.
    Result<TileSizes> tile_sizes(const Kernel& kernel, const HandChoices& hand, const StepChoices& choices) const {
        TileSizes sizes{Extents(extents_.size(), 0), Extents(extents_.size(), 0), Extents(extents_.size(), 0)};
        MachineCostOptions options;
        options.whole = true;
        bool is_open = false;
        const auto take = [&](AxisId axis, const std::map<AxisId, ScheduleItem>& by_hand, std::vector<std::int64_t>& to,
                              std::map<AxisId, std::int64_t>& known) {
            const auto item = by_hand.find(axis);
            item == by_hand.end() ? void(is_open = true) : void(known[axis] = to[at(axis)] = *item->second.value);
        };
        std::vector<AxisId> streams;
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) streams.push_back(loop->axis);
        for (const AxisId axis : streams) take(axis, hand.stream, sizes.stream, options.stream);
        const bool has_group = std::any_of(kernel.group_axes.begin(), kernel.group_axes.end(),
                                           [&](AxisId axis) { return hand.group.contains(axis); });
        for (const AxisId axis : kernel.group_axes) {
            // Beside groups by hand, an axis whose groups would repeat each other's work runs whole.
            if (has_group && contains(kernel.recompute_axes, axis) && !hand.group.contains(axis))
                options.group[axis] = extents_[at(axis)];
            else
                take(axis, hand.group, sizes.group, options.group);
        }
        if (is_open) {
            const auto cost = cost_on_machine(derived_, kernel, extents_, machine_, options);
            if (!cost) return cost.errors();
            for (const auto& [axis, size] : cost->group)
                if (contains(kernel.group_axes, axis) && !options.group.contains(axis)) sizes.group[at(axis)] = size;
            for (const auto& [axis, size] : cost->stream)
                if (contains(streams, axis) && !options.stream.contains(axis)) sizes.stream[at(axis)] = size;
        }
        for (const auto& [axis, part] : choices.subloop) sizes.sub[at(axis)] = part.value;
        return sizes;
    }

    /// The axis whose values warpgroups share, and how many each has: a row for every thread where the group has as many.
    void share_among_warpgroups(StepContext& context, const StepChoices& choices, const Kernel& kernel,
                                const std::vector<StatementWork>& work) const {
        // Four warps, one for each part of a core: those of an instruction that several warps run together.
        context.threads = 4 * static_cast<std::int64_t>(machine_.threads->warp_threads.value);
        AxisId rows = -1;
        const auto group_of = [&](AxisId axis) {
            return context.sizes.group[at(axis)] > 0 ? context.sizes.group[at(axis)] : extents_[at(axis)];
        };
        for (const AxisId axis : kernel.group_axes)
            if (rows < 0 || group_of(axis) > group_of(rows)) rows = axis;
        std::int64_t m = 1;
        for (const StatementWork& w : work) {
            if (!w.contraction) continue;
            if (const Instruction* i = instruction_for(machine_, w.contraction->type)) m = i->m.from;
            for (const AxisId axis : w.contraction->m)
                if (contains(kernel.group_axes, axis)) rows = axis;
            break;
        }
        context.warpgroup.clear();
        for (const auto& [axis, share] : choices.warpgroup) context.warpgroup[axis] = share.value;
        if (!context.warpgroup.empty() || rows < 0) return;
        const std::int64_t size = group_of(rows);
        context.warpgroup[rows] = size % context.threads == 0 ? context.threads
                                  : m > 1 && size % m == 0    ? m
                                                              : std::min(size, context.threads);
    }

    [[nodiscard]] Status check_warpgroup(const StepContext& context, const StepChoices& choices, const Kernel& kernel) const {
        for (const auto& [axis, share] : choices.warpgroup) {
            const std::string& name = derived_.diagram.axis(axis).name;
            if (!contains(kernel.group_axes, axis))
                return Diagnostic{
                    .code = "not-groupable",
                    .range = share.range,
                    .message = fmt::format("warpgroups cannot share {}: kernel {} does not group it", name, kernel.name),
                    .expected = "one of " + join(names_of(derived_.diagram.axes, kernel.group_axes), ", "),
                    .hint = ""};
            const std::int64_t group = context.sizes.group[at(axis)] > 0 ? context.sizes.group[at(axis)]
                                                                         : extents_[at(axis)];
            if (group % share.value == 0) continue;
            return Diagnostic{.code = "broken-divisor",
                              .range = share.range,
                              .message = fmt::format("g_{0} = {1} is no multiple of w_{0} = {2}", name, group, share.value),
                              .expected = "as many values for each warpgroup",
                              .hint = fmt::format("the nearest legal choice is group {} = {}", name,
                                                  std::max<std::int64_t>(1, group / share.value) * share.value)};
        }
        return Done{};
    }

    /// Of streams, and of axes of what contractions accumulate.
    [[nodiscard]] Status check_subloops(const StepChoices& choices, const std::vector<StatementWork>& work) const {
        std::vector<AxisId> legal;
        for (const StatementWork& w : work) {
            if (w.stream >= 0 && !contains(legal, w.stream)) legal.push_back(w.stream);
            if (w.contraction && w.carries)
                for (const AxisId axis : w.contraction->n)
                    if (!contains(legal, axis)) legal.push_back(axis);
        }
        for (const auto& [axis, part] : choices.subloop)
            if (!contains(legal, axis))
                return Diagnostic{
                    .code = "no-subloop",
                    .range = part.range,
                    .message = fmt::format(
                        "subloop {} cuts nothing: no stream runs over it, and no contraction accumulates along it",
                        derived_.diagram.axis(axis).name),
                    .expected = legal.empty() ? "a stream"
                                              : "one of " + join(names_of(derived_.diagram.axes, legal), ", "),
                    .hint = "leave the line out"};
        return Done{};
    }

    Result<KernelSteps> steps_of(std::size_t k, const HandChoices& hand) {
        const Kernel& kernel = derived_.kernels[k];
        std::vector<ScheduleItem> items;
        for (const ScheduleItem& item : items_)
            if (item.kernel.empty() || item.kernel == kernel.name) items.push_back(item);
        auto choices = step_choices(derived_.diagram, machine_, items);
        if (!choices) return choices.errors();
        auto sizes = tile_sizes(kernel, hand, *choices);
        if (!sizes) return sizes.errors();
        StepContext context{derived_.diagram, machine_, extents_, *sizes, {}, 128};
        const TileProgram expanded = expand(derived_);
        std::set<AxisId> cut;
        for (const auto& [axis, part] : choices->subloop) cut.insert(axis);
        const TileKernel in_parts = with_accumulators_in_parts(derived_.diagram,
                                                               with_numbers(expanded.kernels[k], extents_), cut);
        const std::vector<StatementWork> work = statement_work(derived_.diagram, in_parts);
        Assigned assigned = assign_levels(derived_.diagram, in_parts, machine_, cut);
        if (const Status s = check_subloops(*choices, work); !s) return s.errors();
        if (const Status s = check_names(*choices, items, assigned); !s) return s.errors();
        if (const Status s = assign_precision(context, *choices, assigned); !s) return s.errors();
        assign_stages(*choices, assigned);
        while (true) {
            share_among_warpgroups(context, *choices, kernel, work);
            if (const Status s = check_warpgroup(context, *choices, kernel); !s) return s.errors();
            auto out = configured(kernel, context, *choices, assigned, work);
            if (out) {
                out->throughput = throughput(context, *choices, assigned, work);
                auto charts = overlap_charts(context, *choices, assigned, *out);
                if (!charts) return charts.errors();
                out->charts = std::move(charts).value();
                out->schedule = schedule_of(context, *choices, assigned, *out);
                if (texts_ == StepTexts::tried)
                    out->steps = told_steps(derived_, expanded, k, cut, context, assigned, *out);
                for (std::size_t v = 0; v < assigned.variables.size(); ++v)
                    out->cuts.push_back(context.cuts_of(assigned, static_cast<VariableId>(v), *choices));
                out->expanded = expanded.kernels[k], out->in_parts = in_parts, out->assigned = assigned;
            }
            if (out || (out.errors().front().code != "memory-exceeded" && out.errors().front().code != "too-many-threads") ||
                !shrink(context, *choices))
                return out;
        }
    }

    static Result<KernelSteps> configured(const Kernel& kernel, const StepContext& context, const StepChoices& choices,
                                          const Assigned& assigned, const std::vector<StatementWork>& work) {
        KernelSteps out;
        out.kernel = kernel.name, out.num_warpgroups = context.num_warpgroups(), out.warpgroup_threads = context.threads;
        out.sizes = sizes_of(context, assigned, choices);
        out.divisors = size_divisors(context, choices, assigned, work);
        if (const Status s = check_divisors(context, choices, out.divisors); !s) return s.errors();
        out.lives = variable_lives(context, choices, assigned);
        if (const Status s = configure(context, choices, assigned, out); !s) return s.errors();
        return out;
    }

    /// Sizes that are not fixed by hand, one step smaller: a warpgroup less, else half a chunk, else half a warpgroup's rows. Those of the model's
    /// choice leave no room for what passes between levels.
    [[nodiscard]] static bool shrink(StepContext& context, const StepChoices& choices) {
        constexpr std::int64_t product_step = 16;
        for (const auto& [axis, share] : context.warpgroup) {
            std::int64_t& group = context.sizes.group[at(axis)];
            if (group == 0) group = context.extents[at(axis)];
            if (choices.group.contains(axis) || group <= share) continue;
            group = (group + share - 1) / share * share - share;
            return true;
        }
        for (std::size_t axis = 0; axis < context.extents.size(); ++axis) {
            std::int64_t& chunk = context.sizes.stream[axis];
            if (choices.stream.contains(static_cast<AxisId>(axis)) || chunk <= 1) continue;
            chunk = chunk >= 2 * product_step ? chunk / 2 / product_step * product_step : chunk / 2;
            return true;
        }
        for (const auto& [axis, share] : context.warpgroup) {
            if (choices.group.contains(axis) || choices.warpgroup.contains(axis) || share <= 1) continue;
            context.sizes.group[at(axis)] = share / 2;
            return true;
        }
        return false;
    }

    /// What a stream loads, it loads while the chunk before is in use, unless the schedule says how many tiles it has.
    static void assign_stages(const StepChoices& choices, Assigned& assigned) {
        for_each_statement(assigned.kernel.body, [&](const TileStatement& s) {
            const auto* load = std::get_if<Load>(&s);
            if (load && !assigned.variables[at(load->variable)].streamed.empty())
                assigned.variables[at(load->variable)].stages = 2;
        });
        for (std::size_t v = 0; v < assigned.variables.size(); ++v)
            if (const auto hand = choices.stages.find(assigned.kernel.variables[v].name); hand != choices.stages.end())
                assigned.variables[v].stages = static_cast<int>(hand->second.value);
    }

    /// Every letter that a variable's size has.
    static std::vector<CutSize> sizes_of(const StepContext& context, const Assigned& assigned, const StepChoices& choices) {
        std::vector<CutSize> out;
        for (const auto& [axis, share] : context.warpgroup)
            out.push_back({axis, 'g',
                           context.sizes.group[at(axis)] > 0 ? context.sizes.group[at(axis)] : context.extents[at(axis)]});
        for (std::size_t v = 0; v < assigned.variables.size(); ++v)
            for (const CutSize& cut : context.cuts_of(assigned, static_cast<VariableId>(v), choices))
                if (cut.letter != 0 && !contains(out, cut)) out.push_back(cut);
        return out;
    }

    const Derived& derived_;
    const Extents& extents_;
    const Machine& machine_;
    const std::vector<ScheduleItem>& items_;
    StepTexts texts_;
};

}  // namespace

Result<StepReport> paper_steps(const Derived& derived, const Extents& extents, const Machine& machine,
                               const std::vector<ScheduleItem>& items, StepTexts texts) {
    return Stepper(derived, extents, machine, items, texts).run();
}

}  // namespace napkin
