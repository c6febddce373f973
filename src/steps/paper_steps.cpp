#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cost/divisors.hpp"
#include "cost/on_machine.hpp"
#include "plan/overrides.hpp"
#include "steps/choices.hpp"
#include "steps/open_sizes.hpp"
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
        for (const auto& [axis, item] : hand->group) out.group[axis] = item;
        for (const auto& [axis, item] : hand->stream) out.stream[axis] = item;
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
        for (const AxisId axis : streams) take(axis, hand.stream, sizes.stream, options.stream);
        const bool has_group = any_of(kernel.group_axes, [&](AxisId axis) { return hand.group.contains(axis); });
        for (const AxisId axis : kernel.group_axes) {
            // Beside groups by hand, an axis whose groups would repeat each other's work runs whole.
            if (has_group && contains(kernel.recompute_axes, axis) && !hand.group.contains(axis))
                options.group[axis] = extents_[axis];
            else
                take(axis, hand.group, sizes.group, options.group);
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
        for (const auto& [axis, part] : choices.subloop) sizes.sub[axis] = part.value;
        return sizes;
    }

    /// The axis whose values warpgroups share, and how many each has: a row for every thread where the group has as
    /// many.
    void share_among_warpgroups(StepContext& context, const StepChoices& choices, const Kernel& kernel,
                                const std::vector<StatementWork>& work) const {
        // Four warps, one for each part of a core: those of an instruction that several warps run together.
        context.threads = 4 * static_cast<std::int64_t>(machine_.threads->warp_threads.value);
        AxisId rows = -1;
        const auto group_of = [&](AxisId axis) {
            return context.sizes.group[axis] > 0 ? context.sizes.group[axis] : extents_[axis];
        };
        for (const AxisId axis : kernel.group_axes)
            if (rows < 0 || group_of(axis) > group_of(rows)) rows = axis;
        const std::int64_t m = rows_of_instruction(work, context.threads);
        for (const StatementWork& w : work) {
            if (!w.contraction) continue;
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
                                                              : even_share(size, extents_[rows], context.threads);
    }
    /// Rows that all threads of a warpgroup take at a time. Where a warp has an instruction to itself, all warps have
    /// their own rows; one that a single thread sets going is the warpgroup's.
    static std::int64_t rows_of(const Instruction& i, std::int64_t threads) {
        return i.m.from * (i.threads > 1 ? std::max<std::int64_t>(1, threads / i.threads) : 1);
    }
    /// Those of the first product; 1: no instruction multiplies it.
    [[nodiscard]] std::int64_t rows_of_instruction(const std::vector<StatementWork>& work, std::int64_t threads) const {
        for (const StatementWork& w : work) {
            if (!w.contraction) continue;
            const Instruction* i = instruction_for(machine_, w.contraction->type);
            return i ? rows_of(*i, threads) : 1;
        }
        return 1;
    }
    /// As many rows for each warpgroup, where they are not so few that most threads would have none.
    static std::int64_t even_share(std::int64_t size, std::int64_t extent, std::int64_t threads) {
        if (size >= extent || size <= threads) return std::min(size, threads);
        constexpr std::int64_t least_used = 8;
        for (std::int64_t share = threads; share * least_used >= threads; --share)
            if (size % share == 0) return share;
        return threads;
    }

    /// What follows from the axes that are cut, whatever the sizes are.
    struct Structure {
        std::set<AxisId> cut;
        TileKernel in_parts;
        std::vector<StatementWork> work;
        Assigned assigned;
    };
    /// A kernel, what is fixed of it, and its structures by the axes that are cut: a search has few of them for many
    /// sizes.
    struct Subject {
        const Kernel& kernel;
        const TileKernel& expanded;
        const std::vector<ScheduleItem>& items;
        std::vector<StatementWork> work;
        std::map<std::set<AxisId>, Structure> structures;
    };
    /// Everything of one choice of sizes but what is told of it.
    struct Made {
        StepContext context;
        StepChoices choices;
        const Structure* structure = nullptr;
        Assigned assigned;
        KernelSteps steps;
        double stream_clocks = 0;  ///< of a group; 0: no chart says
        double seconds = 0;        ///< of all groups in their steady state
        double core_seconds = 0;   ///< were the pipes above the core no limit
        [[nodiscard]] bool spills() const { return steps.registers.total() > steps.registers.limit; }
    };

    Result<KernelSteps> steps_of(std::size_t k, const Overrides& all) const {
        const Kernel& kernel = derived_.kernels[k];
        const auto own = with_own(all, kernel);
        if (!own) return own.errors();
        const Overrides& hand = *own;
        std::vector<ScheduleItem> items;
        for (const ScheduleItem& item : items_)
            if (item.kernel.empty() || item.kernel == kernel.name) items.push_back(item);
        auto choices = step_choices(derived_.diagram, machine_, items);
        if (!choices) return choices.errors();
        auto sizes = tile_sizes(kernel, hand, *choices);
        if (!sizes) return sizes.errors();
        const TileProgram expanded = expand(derived_);
        Subject subject{kernel, expanded.kernels[k], items, statement_work(derived_.diagram, expanded.kernels[k]), {}};
        auto made = made_keeping_divisors(subject, *choices, *sizes);
        if (!made) return with_nearest(made.errors(), subject, *choices, *sizes);
        const std::unique_ptr<Made> best = fastest(subject, hand, *choices,
                                                   std::make_unique<Made>(std::move(made).value()));
        KernelSteps out = std::move(best->steps);
        auto charts = overlap_charts(best->context, best->choices, best->assigned, out);
        if (!charts) return charts.errors();
        out.charts = std::move(charts).value();
        if (best->stream_clocks > 0)
            out.steady = steady_state(best->context, kernel, best->assigned, out, best->stream_clocks);
        out.instructions = instructions_of(best->assigned, best->structure->work);
        out.schedule = schedule_of(best->context, best->choices, best->assigned, out);
        if (texts_ == StepTexts::tried)
            out.steps = narrated_steps(derived_, expanded, k, best->structure->cut, best->context, best->assigned, out);
        for (std::size_t v = 0; v < best->assigned.variables.size(); ++v)
            out.cuts.push_back(best->context.cuts_of(best->assigned, VariableId::of(v), best->choices));
        out.expanded = expanded.kernels[k], out.in_parts = best->structure->in_parts;
        out.assigned = std::move(best->assigned);
        return out;
    }

    /// Takes the open sizes with the shortest time that spill nothing and break no divisors, as the charts have it.
    /// Sizes whose busiest unit alone takes longer than the best so far need no chart.
    std::unique_ptr<Made> fastest(Subject& subject, const Overrides& hand, const StepChoices& given,
                                  std::unique_ptr<Made> best) const {
        static constexpr double gain = 1e-3;
        const auto breaks = [&](const Made& m) {
            return keeping_divisors(m.context, given, m.steps.divisors, Legal::nearest).has_value();
        };
        // Less is no reason to do anything else. Where pipes above the core take as long, the core has more time to
        // spare.
        const auto is_faster = [](double seconds, double core_seconds, const Made& than) {
            if (seconds < than.seconds * (1 - gain)) return true;
            return seconds < than.seconds * (1 + gain) && core_seconds < than.core_seconds * (1 - gain);
        };
        struct Other {
            double seconds = 0, core_seconds = 0;  ///< no fewer
            std::unique_ptr<Made> made;
        };
        std::vector<Other> others;
        if (!(best->seconds > 0)) return best;
        for (const auto& [sizes, choices] : alternatives(subject, hand, *best)) {
            auto other = configured(subject, choices, sizes);
            if (!other || (breaks(*other) && !breaks(*best)) || (other->spills() && !best->spills())) continue;
            const double clocks = least_clocks(other->context, choices, other->assigned, other->steps);
            const SteadyState least = steady_state(other->context, subject.kernel, other->assigned, other->steps, clocks);
            others.push_back({least.seconds, least.core_seconds, std::make_unique<Made>(std::move(other).value())});
        }
        stable_sort(others, [](const Other& a, const Other& b) {
            return std::pair{a.seconds, a.core_seconds} < std::pair{b.seconds, b.core_seconds};
        });
        for (Other& other : others) {
            const bool spills_less = best->spills() && !other.made->spills();
            if ((other.made->spills() && !best->spills()) ||
                (!spills_less && !is_faster(other.seconds, other.core_seconds, *best)))
                continue;
            timed(subject, *other.made);
            if (other.made->seconds > 0 && (spills_less || is_faster(other.made->seconds, other.made->core_seconds, *best)))
                best = std::move(other.made);
        }
        return best;
    }

    /// Errors: those of precision and names.
    Result<const Structure*> structure_of(Subject& subject, const StepChoices& choices) const {
        std::set<AxisId> cut;
        for (const auto& [axis, part] : choices.subloop) cut.insert(axis);
        if (const auto known = subject.structures.find(cut); known != subject.structures.end()) return &known->second;
        Structure out{cut, with_subloops_along(derived_.diagram, with_numbers(subject.expanded, extents_), cut), {}, {}};
        out.work = statement_work(derived_.diagram, out.in_parts);
        out.assigned = assign_levels(derived_.diagram, out.in_parts, machine_);
        if (const Status s = check_names(choices, subject.items, out.assigned); !s) return s.errors();
        const StepContext no_sizes{derived_.diagram, machine_, extents_, {}, {}, 128};
        if (const Status s = assign_precision(no_sizes, choices, out.assigned); !s) return s.errors();
        return &(subject.structures[cut] = std::move(out));
    }

    /// With its tables, before any order of issue is tried. Errors: those of the steps.
    Result<Made> configured(Subject& subject, const StepChoices& choices, const TileSizes& sizes) const {
        Made out{{derived_.diagram, machine_, extents_, sizes, {}, 128}, choices, nullptr, {}, {}, 0, 0};
        // What may not be cut has no structure.
        if (const Status s = check_subloops(out.context, choices, subject.work); !s) return s.errors();
        const auto structure = structure_of(subject, choices);
        if (!structure) return structure.errors();
        out.structure = *structure, out.assigned = out.structure->assigned;
        assign_stages(choices, out.assigned);
        share_among_warpgroups(out.context, choices, subject.kernel, out.structure->work);
        if (const Status s = check_warpgroup(out.context, choices, subject.kernel); !s) return s.errors();
        if (const Status s = check_pieces(out.context, choices, out.assigned); !s) return s.errors();
        auto made = tables(out.context, choices, out.assigned, out.structure->work);
        if (!made) return made.errors();
        out.steps = std::move(made).value();
        out.steps.kernel = subject.kernel.name;
        return out;
    }
    /// In its order of issue, with the time that this takes.
    void timed(const Subject& subject, Made& made) const {
        choose_order(made);
        made.steps.kernel = subject.kernel.name;
        const auto clocks = steady_clocks(made.context, made.choices, made.assigned, made.steps);
        if (!clocks || !(made.steps.throughput.tensor_flop_per_s > 0)) return;
        made.stream_clocks = clocks->steady;
        const SteadyState all = steady_state(made.context, subject.kernel, made.assigned, made.steps, clocks->steady);
        made.seconds = all.seconds, made.core_seconds = all.core_seconds;
    }
    /// Errors: those of the steps.
    Result<Made> made_of(Subject& subject, const StepChoices& choices, const TileSizes& sizes) const {
        auto out = configured(subject, choices, sizes);
        if (out) timed(subject, *out);
        return out;
    }

    /// With sizes that are open made smaller until they fit.
    Result<Made> made_smaller(Subject& subject, const StepChoices& choices, TileSizes sizes, bool is_timed = true) const {
        while (true) {
            auto made = is_timed ? made_of(subject, choices, sizes) : configured(subject, choices, sizes);
            if (made || !takes_too_much(made.errors())) return made;
            StepContext context{derived_.diagram, machine_, extents_, sizes, {}, 128};
            share_among_warpgroups(context, choices, subject.kernel, subject.work);
            if (!shrink(context, choices)) return made;
            sizes = context.sizes;
        }
    }

    [[nodiscard]] static bool takes_too_much(const std::vector<Diagnostic>& errors) {
        return errors.front().code == "memory-exceeded" || errors.front().code == "too-many-threads";
    }
    /// Sizes by hand may break their divisors where they fit and the least that keep them do not, as the model's own do
    /// then.
    Result<Made> made_with_divisors(Subject& subject, const StepChoices& choices, const TileSizes& sizes) const {
        auto made = made_smaller(subject, choices, sizes);
        if (made || made.errors().front().code != "broken-divisor") return made;
        StepChoices breaking = choices, keeping = choices;
        breaking.may_break_divisors = true;
        auto broken = made_smaller(subject, breaking, sizes);
        if (!broken) return made;
        TileSizes least = broken->context.sizes;
        for (const auto& [size, multiple] : broken->steps.divisors.merged()) {
            if (!is_broken(broken->context, size, multiple)) continue;
            const std::int64_t legal = std::min(multiple, extents_[size.axis]);
            if (size.letter == 's') least.stream[size.axis] = legal;
            if (size.letter == 'u') least.sub[size.axis] = legal, keeping.subloop[size.axis].value = legal;
            if (size.letter == 'g' || size.letter == 'w') least.group[size.axis] = legal;
            if (size.letter == 'w' && keeping.warpgroup.contains(size.axis)) keeping.warpgroup[size.axis].value = legal;
        }
        const auto kept = made_of(subject, keeping, least);
        return kept || !takes_too_much(kept.errors()) ? std::move(made) : std::move(broken);
    }

    /// Where sizes that are open break their divisors, the nearest that keep them, else the least, where these fit.
    Result<Made> made_keeping_divisors(Subject& subject, const StepChoices& choices, const TileSizes& sizes) const {
        auto made = made_with_divisors(subject, choices, sizes);
        if (!made) return made;
        for (const Legal legal : {Legal::nearest, Legal::least}) {
            const auto keeping = keeping_divisors(made->context, choices, made->steps.divisors, legal);
            if (!keeping) return made;
            auto other = made_with_divisors(subject, choices, *keeping);
            if (other && !keeping_divisors(other->context, choices, other->steps.divisors, legal)) return other;
        }
        return made;
    }

    /// Where sizes by hand take too much: the largest group, else the longest chunk, else both, with which all that is
    /// asked for besides fits.
    std::vector<Diagnostic> with_nearest(std::vector<Diagnostic> errors, Subject& subject, const StepChoices& choices,
                                         const TileSizes& sizes) const {
        if (!takes_too_much(errors)) return errors;
        StepContext context{derived_.diagram, machine_, extents_, sizes, {}, 128};
        share_among_warpgroups(context, choices, subject.kernel, subject.work);
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
                if (nearest.empty() && made_smaller(subject, choices, other, false).ok()) nearest = text;
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

    /// Other sizes of what is open, and parts of what contractions accumulate where all is: warpgroups of the axis that
    /// they share, whole multiples of the chunk's divisors.
    [[nodiscard]] std::vector<std::pair<TileSizes, StepChoices>> alternatives(const Subject& subject, const Overrides& hand,
                                                                              const Made& made) const {
        const Kernel& kernel = subject.kernel;
        std::vector<std::pair<TileSizes, StepChoices>> out;
        if (made.context.warpgroup.size() != 1 || !(made.steps.throughput.tensor_flop_per_s > 0)) return out;
        const AxisId rows = made.context.warpgroup.begin()->first;
        const StepChoices& choices = made.choices;
        // Warpgroups with a row for each thread, or with those of an instruction.
        const std::int64_t threads = made.context.threads;
        std::set<std::int64_t> shares{threads};
        for (const Instruction& i : machine_.instructions) shares.insert(rows_of(i, threads));
        std::set<std::int64_t> groups{made.context.sizes.group[rows]};
        if (!hand.group.contains(rows) && contains(kernel.group_axes, rows))
            for (const std::int64_t share : shares)
                for (std::int64_t n = 1; n <= 4; ++n)
                    if (share > 1 && n * share <= extents_[rows]) groups.insert(n * share);
        AxisId stream = -1;
        for (const TileStatement& s : made.assigned.kernel.body)
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s); loop && !(*loop)->is_sub && stream < 0)
                stream = (*loop)->axis;
        std::set<std::int64_t> chunks;
        if (stream >= 0) chunks.insert(made.context.sizes.stream[stream]);
        if (stream >= 0 && !hand.stream.contains(stream)) {
            std::int64_t unit = 1;
            for (const auto& [size, multiple] : made.steps.divisors.merged())
                if (size.axis == stream && size.letter == 's') unit = std::lcm(unit, multiple);
            constexpr std::int64_t longest = 256;
            for (std::int64_t chunk = unit; chunk <= std::min(longest, extents_[stream]); chunk *= 2)
                chunks.insert(chunk);
        }
        // A subloop by hand, or sizes, say how contractions are cut; else they may be.
        std::vector<AxisId> columns;
        if (hand.group.empty() && hand.stream.empty() && choices.subloop.empty())
            for (const StatementWork& w : made.structure->work)
                if (w.contraction && w.carries)
                    for (const AxisId axis : w.contraction->n)
                        if (made.context.cut(axis, {}, {}, false).letter == 0 && axis != stream && !contains(columns, axis))
                            columns.push_back(axis);
        StepChoices open = choices;
        open.issue.clear(), open.turns.clear();
        for (const auto& [variable, stages] : choices.stages)
            if (!stages.range.source) open.stages.erase(variable);
        if (!steps_order_is_open(items_)) open = choices;
        // In a group by hand every thread has a row, where there are so many.
        const bool may_be_narrow = choices.warpgroup.empty() && !hand.group.contains(rows);
        const auto add = [&](const TileSizes& sizes, const StepChoices& with) {
            if (sizes != made.context.sizes) out.emplace_back(sizes, with);
            for (const std::int64_t share : shares) {
                if (!may_be_narrow || share <= 1 || share >= threads || sizes.group[rows] % threads != 0) continue;
                StepChoices narrow = with;
                narrow.warpgroup[rows] = {share, {}};
                out.emplace_back(sizes, std::move(narrow));
            }
        };
        for (const std::int64_t part : {std::int64_t{0}, std::int64_t{32}, std::int64_t{64}})
            for (const std::int64_t group : groups)
                for (const std::int64_t chunk : chunks) {
                    std::pair<TileSizes, StepChoices> other{made.context.sizes, open};
                    other.first.group[rows] = group;
                    if (stream >= 0) other.first.stream[stream] = chunk;
                    bool cuts = part == 0;
                    for (const AxisId axis : columns)
                        if (part > 0 && part < extents_[axis] && extents_[axis] % part == 0)
                            other.first.sub[axis] = part, other.second.subloop[axis] = {part, {}}, cuts = true;
                    if (cuts) add(other.first, other.second);
                }
        return out;
    }
    [[nodiscard]] static bool steps_order_is_open(const std::vector<ScheduleItem>& items) {
        return none_of(items, [](const ScheduleItem& item) {
            return item.kind == ChoiceKind::issue || item.kind == ChoiceKind::turns;
        });
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

    static Result<KernelSteps> tables(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                                      const std::vector<StatementWork>& work) {
        KernelSteps out;
        out.num_warpgroups = context.num_warpgroups(), out.warpgroup_threads = context.threads;
        out.sizes = sizes_of(context, assigned, choices);
        out.divisors = size_divisors(context, choices, assigned, work);
        if (const Status s = check_divisors(context, choices, out.divisors); !s) return s.errors();
        out.lives = variable_lives(context, choices, assigned);
        if (const Status s = configure(context, choices, assigned, out); !s) return s.errors();
        out.throughput = throughput(context, choices, assigned, work);
        return out;
    }

    /// The order of issue with the shortest steady state, where none is by hand: the program's own, where no other that
    /// fits is faster.
    static void choose_order(Made& made) {
        if (!made.choices.issue.empty() || !made.choices.turns.empty()) return;
        const auto in_order = steady_clocks(made.context, made.choices, made.assigned, made.steps);
        if (!in_order || !(in_order->steady > 0)) return;
        // Less is no reason to do anything else.
        constexpr double gain = 1e-3;
        double best = in_order->steady;
        if (best * (1 - gain) <= in_order->least) {
            made.steps.order = fmt::format(
                "the program's, {:.4g} clocks a group: no order takes fewer than the busiest unit", best);
            return;
        }
        std::string chosen = "the program's";
        std::vector<std::string> tried{fmt::format("the program's {:.4g} clocks a group", best)};
        const StepChoices open = made.choices;
        const Assigned plain = made.assigned;
        for (IssueOrder& order : issue_orders(made.context, open, plain, made.steps)) {
            Assigned with = plain;
            assign_stages(order.choices, with);
            auto other = tables(made.context, order.choices, with, made.structure->work);
            if (!other) continue;
            const auto clocks = steady_clocks(made.context, order.choices, with, *other);
            if (!clocks) continue;
            tried.push_back(fmt::format("{} {:.4g}", order.what, clocks->steady));
            if (clocks->steady >= best * (1 - gain)) continue;
            best = clocks->steady, chosen = order.what;
            made.choices = std::move(order.choices), made.assigned = std::move(with),
            made.steps = std::move(other).value();
        }
        if (tried.size() > 1) made.steps.order = fmt::format("{}, the fastest: {}", chosen, join(tried, ", "));
    }

    /// What a stream loads, it loads while the chunk before is in use, unless the schedule says how many tiles it has.
    static void assign_stages(const StepChoices& choices, Assigned& assigned) {
        for_each_statement(assigned.kernel.body, [&](const TileStatement& s) {
            const auto* load = std::get_if<Load>(&s);
            if (load && !assigned.variables[load->variable].streamed.empty())
                assigned.variables[load->variable].stages = 2;
        });
        for (const VariableId v : assigned.variables.ids())
            if (const auto hand = choices.stages.find(assigned.kernel.variables[v].name); hand != choices.stages.end())
                assigned.variables[v].stages = static_cast<int>(hand->second.value);
    }

    /// Every letter that a variable's size has.
    static std::vector<CutSize> sizes_of(const StepContext& context, const Assigned& assigned, const StepChoices& choices) {
        std::vector<CutSize> out;
        for (const auto& [axis, share] : context.warpgroup)
            out.push_back({axis, 'g', context.sizes.group[axis] > 0 ? context.sizes.group[axis] : context.extents[axis]});
        for (std::size_t v = 0; v < assigned.variables.size(); ++v)
            for (const CutSize& cut : context.cuts_of(assigned, VariableId::of(v), choices))
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
