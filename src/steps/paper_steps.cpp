#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "cost/divisors.hpp"
#include "cost/on_machine.hpp"
#include "plan/by_hand.hpp"
#include "steps/choices.hpp"
#include "steps/tell.hpp"
#include "support/ids.hpp"
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
            if ((item.kind == "group" || item.kind == "stream") && item.kernel.empty()) sizes.push_back(item);
        const auto hand = hand_choices(derived_, extents_, sizes);
        if (!hand) return hand.errors();
        std::vector<Diagnostic> errors = unknown_kernels();
        if (!errors.empty()) return errors;
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
    Result<HandChoices> with_own(const HandChoices& all, const Kernel& kernel) const {
        std::vector<ScheduleItem> own;
        for (const ScheduleItem& item : items_)
            if ((item.kind == "group" || item.kind == "stream") && item.kernel == kernel.name) own.push_back(item);
        Derived alone = derived_;
        alone.kernels = {kernel};
        auto hand = hand_choices(alone, extents_, own);
        if (!hand) return hand.errors();
        HandChoices out = all;
        for (const auto& [axis, item] : hand->group) out.group[axis] = item;
        for (const auto& [axis, item] : hand->stream) out.stream[axis] = item;
        return out;
    }

    /// By hand; else those that the closed form finds fastest, which the configuration may find too large.
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
            auto cost = cost_on_machine(derived_, kernel, extents_, machine_, options);
            // What fits a core is asked of the configuration alone, which knows what its levels hold.
            if (!cost) options.planned = true, cost = cost_on_machine(derived_, kernel, extents_, machine_, options);
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
            // Where a warp has an instruction to itself, all warps of the group have their own rows.
            if (const Instruction* i = instruction_for(machine_, w.contraction->type))
                m = i->m.from * std::max<std::int64_t>(1, context.threads / std::max<std::int64_t>(1, i->threads));
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

    /// Of streams, and of axes of what contractions accumulate; a part lies in what it is a part of.
    [[nodiscard]] Status check_subloops(const StepChoices& choices, const std::vector<StatementWork>& work,
                                        const TileSizes& sizes) const {
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
        for (const auto& [axis, part] : choices.subloop) {
            const std::int64_t chunk = sizes.stream[at(axis)], most = chunk > 0 ? chunk : extents_[at(axis)];
            const std::string& name = derived_.diagram.axis(axis).name;
            if (part.value > most)
                return out_of_range(part.range,
                                    fmt::format("u_{} = {}, but {} {} values", name, part.value,
                                                chunk > 0 ? "a chunk has" : name + " has", most),
                                    most, fmt::format("subloop {} = ", name));
        }
        return Done{};
    }
    static Diagnostic out_of_range(const SourceRange& range, std::string message, std::int64_t most,
                                   const std::string& line) {
        return {.code = "size-out-of-range",
                .range = range,
                .message = std::move(message),
                .expected = fmt::format("1 … {}", most),
                .hint = fmt::format("the nearest legal choice is {}{}", line, most)};
    }
    /// A piece of what is passed on is no larger than what is passed.
    [[nodiscard]] Status check_pieces(const StepContext& context, const StepChoices& choices, const Assigned& assigned) const {
        for (VariableId v = 0; at(v) < assigned.variables.size(); ++v) {
            const auto pieces = choices.pieces.find(assigned.kernel.variables[at(v)].name);
            if (pieces == choices.pieces.end()) continue;
            for (const CutSize& whole : context.cuts_of(assigned, v, {}))
                if (const auto piece = pieces->second.find(whole.axis);
                    piece != pieces->second.end() && piece->second.value > whole.size)
                    return out_of_range(
                        piece->second.range,
                        fmt::format("a piece of {} of {}, of which {} has {}", piece->second.value,
                                    derived_.diagram.axis(whole.axis).name, pieces->first, whole.size),
                        whole.size, fmt::format("piece {} {} ", pieces->first, derived_.diagram.axis(whole.axis).name));
        }
        return Done{};
    }
    [[nodiscard]] std::int64_t chunks_of(const StepContext& context, AxisId stream) const {
        const std::int64_t chunk = context.sizes.stream[at(stream)];
        return chunk > 0 ? ceil_div(extents_[at(stream)], chunk) : 1;
    }

    /// Everything of one choice of sizes but what is told of it.
    struct Made {
        StepContext context;
        StepChoices choices;
        TileKernel in_parts;
        std::set<AxisId> cut;
        Assigned assigned;
        std::vector<StatementWork> work;
        KernelSteps steps;
        double clocks_a_row = 0;  ///< of a group's streams, with the cores that wait for the last groups; 0: no chart says
        [[nodiscard]] bool spills() const { return steps.registers.total() > steps.registers.limit; }
    };

    Result<KernelSteps> steps_of(std::size_t k, const HandChoices& all) const {
        const Kernel& kernel = derived_.kernels[k];
        const auto own = with_own(all, kernel);
        if (!own) return own.errors();
        const HandChoices& hand = *own;
        std::vector<ScheduleItem> items;
        for (const ScheduleItem& item : items_)
            if (item.kernel.empty() || item.kernel == kernel.name) items.push_back(item);
        auto choices = step_choices(derived_.diagram, machine_, items);
        if (!choices) return choices.errors();
        auto sizes = tile_sizes(kernel, hand, *choices);
        if (!sizes) return sizes.errors();
        const TileProgram expanded = expand(derived_);
        auto made = made_with_divisors(kernel, expanded.kernels[k], *choices, items, *sizes);
        if (!made) return with_nearest(made.errors(), kernel, expanded.kernels[k], *choices, items, *sizes);
        auto best = std::make_unique<Made>(std::move(made).value());
        // Of open sizes the ones with the fewest clocks a row that spill nothing, as the charts have it.
        for (const auto& [other, others_choices] : alternatives(kernel, hand, *best)) {
            auto tried = made_of(kernel, expanded.kernels[k], others_choices, items, other);
            if (!tried || !(tried->clocks_a_row > 0) || !(best->clocks_a_row > 0)) continue;
            constexpr double gain = 1e-3;
            if (tried->spills() == best->spills() ? tried->clocks_a_row < best->clocks_a_row * (1 - gain) : best->spills())
                best = std::make_unique<Made>(std::move(tried).value());
        }
        KernelSteps out = std::move(best->steps);
        auto charts = overlap_charts(best->context, best->choices, best->assigned, out);
        if (!charts) return charts.errors();
        out.charts = std::move(charts).value();
        out.schedule = schedule_of(best->context, best->choices, best->assigned, out);
        if (texts_ == StepTexts::tried)
            out.steps = told_steps(derived_, expanded, k, best->cut, best->context, best->assigned, out);
        for (std::size_t v = 0; v < best->assigned.variables.size(); ++v)
            out.cuts.push_back(best->context.cuts_of(best->assigned, static_cast<VariableId>(v), best->choices));
        out.expanded = expanded.kernels[k], out.in_parts = best->in_parts, out.assigned = std::move(best->assigned);
        return out;
    }

    /// Errors: those of the steps.
    Result<Made> made_of(const Kernel& kernel, const TileKernel& expanded, const StepChoices& choices,
                         const std::vector<ScheduleItem>& items, const TileSizes& sizes) const {
        Made out{{derived_.diagram, machine_, extents_, sizes, {}, 128}, choices, {}, {}, {}, {}, {}, 0};
        for (const auto& [axis, part] : choices.subloop) out.cut.insert(axis);
        out.in_parts = with_accumulators_in_parts(derived_.diagram, with_numbers(expanded, extents_), out.cut);
        out.work = statement_work(derived_.diagram, out.in_parts);
        out.assigned = assign_levels(derived_.diagram, out.in_parts, machine_, out.cut);
        if (const Status s = check_subloops(choices, out.work, sizes); !s) return s.errors();
        if (const Status s = check_names(choices, items, out.assigned); !s) return s.errors();
        if (const Status s = assign_precision(out.context, choices, out.assigned); !s) return s.errors();
        assign_stages(choices, out.assigned);
        share_among_warpgroups(out.context, choices, kernel, out.work);
        if (const Status s = check_warpgroup(out.context, choices, kernel); !s) return s.errors();
        if (const Status s = check_pieces(out.context, choices, out.assigned); !s) return s.errors();
        auto made = configured(kernel, out.context, choices, out.assigned, out.work);
        if (!made) return made.errors();
        out.steps = std::move(made).value();
        out.steps.throughput = throughput(out.context, choices, out.assigned, out.work);
        choose_order(kernel, out.context, out.work, out.choices, out.assigned, out.steps);
        out.clocks_a_row = clocks_a_row(kernel, out);
        return out;
    }

    /// With sizes that are open made smaller until they fit.
    Result<Made> made_smaller(const Kernel& kernel, const TileKernel& expanded, const StepChoices& choices,
                              const std::vector<ScheduleItem>& items, TileSizes sizes) const {
        while (true) {
            auto made = made_of(kernel, expanded, choices, items, sizes);
            if (made || !takes_too_much(made.errors())) return made;
            StepContext context{derived_.diagram, machine_, extents_, sizes, {}, 128};
            share_among_warpgroups(context, choices, kernel,
                                   statement_work(derived_.diagram, with_numbers(expanded, extents_)));
            if (!shrink(context, choices)) return made;
            sizes = context.sizes;
        }
    }

    [[nodiscard]] static bool takes_too_much(const std::vector<Diagnostic>& errors) {
        return errors.front().code == "memory-exceeded" || errors.front().code == "too-many-threads";
    }
    /// Sizes by hand may break their divisors where they fit and the least that keep them do not, as the model's own do then.
    Result<Made> made_with_divisors(const Kernel& kernel, const TileKernel& expanded, const StepChoices& choices,
                                    const std::vector<ScheduleItem>& items, const TileSizes& sizes) const {
        auto made = made_smaller(kernel, expanded, choices, items, sizes);
        if (made || made.errors().front().code != "broken-divisor") return made;
        StepChoices breaking = choices, keeping = choices;
        breaking.may_break_divisors = true;
        auto broken = made_smaller(kernel, expanded, breaking, items, sizes);
        if (!broken) return made;
        TileSizes least = broken->context.sizes;
        for (const auto& [size, multiple] : broken->steps.divisors.merged()) {
            if (!is_broken(broken->context, size, multiple)) continue;
            const std::int64_t legal = std::min(multiple, extents_[at(size.axis)]);
            if (size.letter == 's') least.stream[at(size.axis)] = legal;
            if (size.letter == 'u') least.sub[at(size.axis)] = legal, keeping.subloop[size.axis].value = legal;
            if (size.letter == 'g' || size.letter == 'w') least.group[at(size.axis)] = legal;
            if (size.letter == 'w' && keeping.warpgroup.contains(size.axis)) keeping.warpgroup[size.axis].value = legal;
        }
        const auto kept = made_of(kernel, expanded, keeping, items, least);
        return kept || !takes_too_much(kept.errors()) ? std::move(made) : std::move(broken);
    }

    /// Where sizes by hand take too much: the largest group, else the longest chunk, with which all that is asked for besides fits.
    std::vector<Diagnostic> with_nearest(std::vector<Diagnostic> errors, const Kernel& kernel,
                                         const TileKernel& expanded, const StepChoices& choices,
                                         const std::vector<ScheduleItem>& items, const TileSizes& sizes) const {
        if (!takes_too_much(errors)) return errors;
        StepContext context{derived_.diagram, machine_, extents_, sizes, {}, 128};
        share_among_warpgroups(context, choices, kernel,
                               statement_work(derived_.diagram, with_numbers(expanded, extents_)));
        const auto fits = [&](const TileSizes& other) {
            return made_smaller(kernel, expanded, choices, items, other).ok();
        };
        const auto hint = [&](const char* kind, AxisId axis, std::int64_t size) {
            for (Diagnostic& error : errors)
                if (error.code == "memory-exceeded" || error.code == "too-many-threads")
                    error.hint = fmt::format("the nearest legal choice is {} {} = {}", kind,
                                             derived_.diagram.axis(axis).name, size);
        };
        constexpr std::int64_t most_tried = 64;
        for (const auto& [axis, share] : context.warpgroup)
            if (choices.group.contains(axis))
                for (std::int64_t n = std::min(most_tried, (sizes.group[at(axis)] - 1) / share); n >= 1; --n) {
                    TileSizes other = sizes;
                    other.group[at(axis)] = n * share;
                    if (fits(other)) return hint("group", axis, n * share), errors;
                }
        for (const auto& [axis, range] : choices.stream) {
            constexpr std::int64_t product_step = 16;
            for (std::int64_t chunk = sizes.stream[at(axis)] / 2; chunk >= 1; chunk /= 2) {
                TileSizes other = sizes;
                other.stream[at(axis)] = chunk >= product_step ? chunk / product_step * product_step : chunk;
                if (fits(other)) return hint("stream", axis, other.stream[at(axis)]), errors;
            }
        }
        return errors;
    }

    /// A group's streams take the clocks of their steady state a chunk, and no less than the pipes above the core need for what a chunk loads
    /// (B.0.1).
    [[nodiscard]] double clocks_a_row(const Kernel& kernel, const Made& made) const {
        const StepContext& context = made.context;
        const auto clocks = steady_clocks(context, made.choices, made.assigned, made.steps);
        if (!clocks || !(made.steps.throughput.tensor_flop_per_s > 0)) return 0;
        double of_group = *clocks, rows = 1, groups = 1;
        for (const TileStatement& s : made.assigned.kernel.body)
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s); loop && !(*loop)->is_sub)
                for (const RowFloor& floor : made.steps.throughput.floors)
                    of_group = std::max(
                        of_group, floor.rows * floor.clocks * static_cast<double>(chunks_of(context, (*loop)->axis)));
        for (const AxisId axis : kernel.group_axes) {
            const std::int64_t size = context.sizes.group[at(axis)] > 0 ? context.sizes.group[at(axis)]
                                                                        : extents_[at(axis)];
            rows *= static_cast<double>(size), groups *= static_cast<double>(ceil_div(extents_[at(axis)], size));
        }
        const double waves = std::ceil(groups / machine_.cores.value) * machine_.cores.value / groups;
        return of_group / rows * waves;
    }

    /// Other sizes of what is open, and parts of what contractions accumulate where all is: warpgroups of the axis that they share, whole multiples of
    /// the chunk's divisors.
    [[nodiscard]] std::vector<std::pair<TileSizes, StepChoices>> alternatives(const Kernel& kernel, const HandChoices& hand,
                                                                              const Made& made) const {
        std::vector<std::pair<TileSizes, StepChoices>> out;
        if (made.context.warpgroup.size() != 1 || !(made.steps.throughput.tensor_flop_per_s > 0)) return out;
        const AxisId rows = made.context.warpgroup.begin()->first;
        const StepChoices& choices = made.choices;
        std::set<std::int64_t> groups{made.context.sizes.group[at(rows)]};
        if (!hand.group.contains(rows) && contains(kernel.group_axes, rows))
            for (const Instruction& i : machine_.instructions)
                for (const std::int64_t share :
                     {made.context.threads,
                      i.m.from * std::max<std::int64_t>(1, made.context.threads / std::max<std::int64_t>(1, i.threads))})
                    for (std::int64_t n = 1; n <= 4; ++n)
                        if (share > 1 && n * share <= extents_[at(rows)]) groups.insert(n * share);
        AxisId stream = -1;
        for (const TileStatement& s : made.assigned.kernel.body)
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s); loop && !(*loop)->is_sub && stream < 0)
                stream = (*loop)->axis;
        std::set<std::int64_t> chunks;
        if (stream >= 0) chunks.insert(made.context.sizes.stream[at(stream)]);
        if (stream >= 0 && !hand.stream.contains(stream)) {
            std::int64_t unit = 1;
            for (const auto& [size, multiple] : made.steps.divisors.merged())
                if (size.axis == stream && size.letter == 's') unit = std::lcm(unit, multiple);
            constexpr std::int64_t longest = 256;
            for (std::int64_t chunk = unit; chunk <= std::min(longest, extents_[at(stream)]); chunk *= 2)
                chunks.insert(chunk);
        }
        // A subloop by hand, or sizes, say how contractions are cut; else they may be.
        std::vector<AxisId> columns;
        if (hand.group.empty() && hand.stream.empty() && choices.subloop.empty())
            for (const StatementWork& w : made.work)
                if (w.contraction && w.carries)
                    for (const AxisId axis : w.contraction->n)
                        if (made.context.cut(axis, {}, {}, false).letter == 0 && axis != stream && !contains(columns, axis))
                            columns.push_back(axis);
        StepChoices open = choices;
        open.issue.clear(), open.turns.clear();
        for (const auto& [variable, stages] : choices.stages)
            if (!stages.range.source) open.stages.erase(variable);
        if (!steps_order_is_open(items_)) open = choices;
        for (const std::int64_t part : {std::int64_t{0}, std::int64_t{32}, std::int64_t{64}})
            for (const std::int64_t group : groups)
                for (const std::int64_t chunk : chunks) {
                    std::pair<TileSizes, StepChoices> other{made.context.sizes, open};
                    other.first.group[at(rows)] = group;
                    if (stream >= 0) other.first.stream[at(stream)] = chunk;
                    bool cuts = part == 0;
                    for (const AxisId axis : columns)
                        if (part > 0 && part < extents_[at(axis)] && extents_[at(axis)] % part == 0)
                            other.first.sub[at(axis)] = part, other.second.subloop[axis] = {part, {}}, cuts = true;
                    const bool is_other = other.first != made.context.sizes;
                    if (cuts && is_other) out.push_back(std::move(other));
                }
        return out;
    }
    [[nodiscard]] static bool steps_order_is_open(const std::vector<ScheduleItem>& items) {
        return std::none_of(items.begin(), items.end(),
                            [](const ScheduleItem& item) { return item.kind == "issue" || item.kind == "turns"; });
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

    /// The order of issue with the shortest steady state, where none is by hand: the program's own, where no other that fits is faster.
    static void choose_order(const Kernel& kernel, const StepContext& context, const std::vector<StatementWork>& work,
                             StepChoices& choices, Assigned& assigned, KernelSteps& steps) {
        if (!choices.issue.empty() || !choices.turns.empty()) return;
        const auto in_order = steady_clocks(context, choices, assigned, steps);
        if (!in_order || !(*in_order > 0)) return;
        // Less is no reason to do anything else.
        constexpr double gain = 1e-3;
        double best = *in_order;
        std::string chosen = "the program's";
        std::vector<std::string> tried{fmt::format("the program's {:.4g} clocks a group", best)};
        const StepChoices open = choices;
        const Assigned plain = assigned;
        for (IssueOrder& order : issue_orders(context, open, plain, steps)) {
            Assigned with = plain;
            assign_stages(order.choices, with);
            auto made = configured(kernel, context, order.choices, with, work);
            if (!made) continue;
            made->throughput = throughput(context, order.choices, with, work);
            const auto clocks = steady_clocks(context, order.choices, with, *made);
            if (!clocks) continue;
            tried.push_back(fmt::format("{} {:.4g}", order.what, *clocks));
            if (*clocks >= best * (1 - gain)) continue;
            best = *clocks, chosen = order.what;
            choices = std::move(order.choices), assigned = std::move(with), steps = std::move(made).value();
        }
        if (tried.size() > 1) steps.order = fmt::format("{}, the fastest: {}", chosen, join(tried, ", "));
    }

    /// Sizes that are not fixed by hand, one step smaller: a warpgroup less, else half a chunk, else half a warpgroup's rows. Those of the model's
    /// choice leave no room for what passes between levels.
    [[nodiscard]] static bool shrink(StepContext& context, const StepChoices& choices) {
        constexpr std::int64_t product_step = 16;
        for (const auto& [axis, share] : context.warpgroup) {
            std::int64_t& group = context.sizes.group[at(axis)];
            if (group == 0) group = context.extents[at(axis)];
            if (choices.group.contains(axis) || group <= share) continue;
            // Far from what fits, half of it.
            constexpr std::int64_t many = 8;
            const std::int64_t warpgroups = (group + share - 1) / share;
            group = (warpgroups > many ? warpgroups / 2 : warpgroups - 1) * share;
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
