#include "cost/on_machine.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cost/accumulators.hpp"
#include "cost/compulsory.hpp"
#include "cost/sub_sizes.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"
#include "tile/exact.hpp"
#include "tile/expand.hpp"

namespace napkin {
namespace {
/// The weight of a second of a group's transfers where something else binds. It is too little to outweigh what binds,
/// and enough to decide between sizes that are equally fast.
constexpr double weight_of_hidden_transfers = 1e-3;
/// Chunks of 1, 4 and 16 times the least are tried; longer ones must save a hundredth.
constexpr std::int64_t longest_chunk_factor = 16, chunk_factor_step = 4;
constexpr double worth_longer_chunks = 0.99;

/// Work at numbers: operations of each row of unit_work.
struct SizedWork {
    std::size_t pipe;  ///< index into MachineCost::pipes_
    UnitRate rate;
    CompiledSize total;
    bool in_loop;
    int flops_each;
    double sustained;  ///< share of the nominal rate
    double overhead;   ///< factor: 1 and what comes beside the operations
};

class MachineCost {
public:
    MachineCost(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine,
                const MachineCostOptions& options)
        : derived_(derived),
          kernel_(kernel),
          extents_(extents),
          machine_(machine),
          options_(options),
          tiles_(options.tiles ? *options.tiles : expand(derived, kernel)),
          grouped_(grouped_axes(kernel, extents, options)),
          live_(liveness(with_numbers(tiles_, extents))),
          subs_(live_, extents, options.sub),
          statements_(statement_work(derived.diagram, tiles_)),
          columns_(subs_.in(core_columns(derived.diagram, tiles_, grouped_, machine))),
          cost_(with_columns(subs_.in(symbolic_cost(derived.diagram, tiles_, grouped_, Measure::bytes)))),
          sized_(cost_, extents),
          memory_(holding(columns_.memory), extents),
          accumulators_(holding(columns_.accumulators), extents),
          once_(each_once(cost_), extents),
          parts_together_(parts_together(cost_), extents) {
        cores_ = machine.cores.value * static_cast<double>(options.levels.devices);
        symbols_ = symbols_of_sizes(cost_, extents.size());
        values_.resize(sized_.num_sizes());
        append(values_, extents);
        for (const UnitWork& w : unit_work(derived.diagram, tiles_, cost_.grouped, machine))
            work_.push_back({pipe_index(pipe_of(machine, w)), w.rate, CompiledSize(subs_.in(w.total), symbols_),
                             w.in_loop, w.flops_each(), sustained_rate_of(machine, w.rate.unit),
                             pipe_of(machine, w) == "special" ? 1 + options.special_overhead : 1.0});
        find_splits();
    }

    Result<KernelOnMachine> run() {
        auto levels = model_levels(machine_, options_.levels);
        if (!levels) return levels.errors();
        core_ = static_cast<std::size_t>(find_if(*levels, [](const ModelLevel& l) { return l.is_core; }) - levels->begin());
        const ModelLevel& core = (*levels)[core_];
        out_.kernel = kernel_.name;
        out_.divisors = divisors(derived_.diagram, kernel_, live_, statements_, machine_);
        out_.core_bytes = tile_bytes_a_core(machine_, core_memory_level(machine_));

        core_weight_ = core.sustained_seconds_per_byte;
        const ModelLevel& outermost = (*levels)[(*levels)[0].rule == LevelRule::devices ? 2 : 0];
        memory_weight_ = outermost.sustained_seconds_per_byte;
        merge_s_ = machine_.launch_s.value + machine_.group_s.value + latency_s(*levels);
        SearchOptions search{.memory = options_.planned ? std::numeric_limits<double>::infinity() : out_.core_bytes,
                             .group_divisor = out_.divisors.least_multiple,
                             .fixed = options_.group,
                             .coarse = options_.quick};
        search.objective = [&](const SizedCost& sized, const SizedCost::Sizes& sizes) {
            // Where something else binds, fewer transfers are better still.
            return std::max(seconds_at(sizes, best_splits(sizes)),
                            again_.seconds_per_byte > 0 && !held_by(again_, sizes) ? again_seconds_ : 0) +
                   weight_of_hidden_transfers * sized.transfers(sizes) * core_weight_;
        };
        find_again((*levels)[0]);
        // Longer chunks repeat less of what is done once a chunk, and take memory from the group.
        SearchResult best;
        for (std::int64_t factor = 1; factor <= (cost_.streamed.empty() ? 1 : longest_chunk_factor);
             factor *= chunk_factor_step) {
            for (const AxisId axis : cost_.streamed) search.stream[axis] = stream_size(axis, core, factor);
            const SearchResult found = search_sizes(sized_, search);
            if (found.fits && (!best.fits || found.objective < worth_longer_chunks * best.objective)) best = found;
            if (!found.fits) break;
        }
        if (!best.fits) {
            // Finer than what the instructions take, before giving up.
            search.group_divisor.clear();
            for (const AxisId axis : cost_.streamed)
                search.stream[axis] = options_.stream.contains(axis) ? stream_size(axis, core, 1) : 1;
            best = search_sizes(sized_, search);
        }
        if (!best.fits) {
            Diagnostic d = does_not_fit(best);
            search.fixed.clear();
            // The user's sizes are to blame if others fit: those that the instructions take, or finer ones.
            SearchResult without = search_sizes(sized_, search);
            search.group_divisor = out_.divisors.least_multiple;
            for (const AxisId axis : cost_.streamed) search.stream[axis] = stream_size(axis, core, 1);
            if (const SearchResult usual = search_sizes(sized_, search); usual.fits) without = usual;
            if (!without.fits || options_.group.empty()) return d;
            d.message = fmt::format("kernel {} does not fit {} with the groups that are set: {} take {}", kernel_.name,
                                    machine_.name, sizes_text(best.sizes), largest_column(best.sizes).text);
            d.hint = sizes_text(nearest_that_fit(search, without.sizes)) + " fits";
            return d;
        }
        take(best.sizes);
        finish(*levels, best.sizes);
        if (!options_.quick) out_.bound_s = bound_s(outermost);
        return std::move(out_);
    }

private:
    /// Grouped axes: those whose groups repeat no work, and those that the options cut. A plan cuts an axis whose
    /// groups repeat work if the whole axis does not fit, and a user may override it.
    static std::vector<AxisId> grouped_axes(const Kernel& kernel, const Extents& extents, const MachineCostOptions& options) {
        std::vector<AxisId> grouped;
        for (const AxisId axis : kernel.group_axes) {
            const auto size = options.group.find(axis);
            const bool is_cut = size != options.group.end() && size->second < extents[axis];
            if (is_cut || !contains(kernel.recompute_axes, axis)) grouped.push_back(axis);
        }
        return grouped;
    }
    [[nodiscard]] double core_bytes() const { return bytes_a_core(machine_, core_memory_level(machine_)); }
    /// The user's sizes with one axis changed to the largest size that fits beside the others. If several axes would
    /// do, it is the one that keeps the largest share. If no single axis makes the tiles fit, it is `otherwise`: the
    /// sizes that fit without any override.
    [[nodiscard]] SizedCost::Sizes nearest_that_fit(SearchOptions search, const SizedCost::Sizes& otherwise) const {
        SizedCost::Sizes nearest = otherwise;
        double best_share = 0;
        for (const auto& [axis, wanted] : options_.group) {
            const std::int64_t step = value_or(search.group_divisor, axis, 1);
            search.fixed = options_.group;
            std::int64_t low = 0, high = ceil_div(wanted, step);  // low fits (0: unknown), high does not
            while (low + 1 < high) {
                const std::int64_t middle = low + (high - low) / 2;
                search.fixed[axis] = middle * step;
                const SearchResult found = search_sizes(sized_, search);
                (found.fits ? low : high) = middle;
                const double share = static_cast<double>(middle * step) / static_cast<double>(wanted);
                if (found.fits && share > best_share) best_share = share, nearest = found.sizes;
            }
        }
        return nearest;
    }
    /// M of all that a core holds, in the measure of its memory: accumulators count as large a share of it as they take
    /// of their own place.
    [[nodiscard]] KernelCost with_columns(KernelCost cost) const {
        cost.memory = columns_.memory;
        for (MemoryColumn column : columns_.accumulators) {
            column.size *= Size(Rational(static_cast<std::int64_t>(core_bytes()),
                                         static_cast<std::int64_t>(accumulator_capacity_bytes(machine_))));
            cost.memory.push_back(std::move(column));
        }
        return cost;
    }
    [[nodiscard]] KernelCost holding(const std::vector<MemoryColumn>& columns) const {
        KernelCost cost = cost_;
        cost.memory = columns;
        return cost;
    }

    /// The cost with each array's tile loaded once a group, however many traversals read it: what a cache that holds it
    /// lets through.
    static KernelCost each_once(KernelCost cost) {
        cost.transfers = Size();
        std::vector<const ArrayTransfers*> kept;
        for (const ArrayTransfers& a : cost.arrays) {
            const bool again = any_of(kept, [&](const ArrayTransfers* b) {
                return b->array == a.array && b->pattern == a.pattern && b->stored == a.stored;
            });
            if (again) continue;
            kept.push_back(&a);
            cost.transfers += a.per_launch;
        }
        return cost;
    }

    /// The cost of groups that run all parts of their stream: what the parts have in common they load once.
    [[nodiscard]] KernelCost parts_together(KernelCost cost) const {
        if (cost.part < 0) return cost;
        TileKernel whole = tiles_;
        whole.parts = {};
        std::vector<AxisId> grouped = grouped_;
        std::erase(grouped, cost.part);
        cost = subs_.in(symbolic_cost(derived_.diagram, whole, grouped, Measure::bytes));
        // The part keeps its place among the sizes.
        cost.grouped = grouped_;
        return cost;
    }

    /// A chunk is the least that the divisors take, and enough bytes to cover the memory's latency (Little's law).
    [[nodiscard]] std::int64_t stream_size(AxisId axis, const ModelLevel& core, std::int64_t factor) const {
        const std::int64_t extent = extents_[axis];
        if (const auto fixed = options_.stream.find(axis); fixed != options_.stream.end())
            return std::min(fixed->second, extent);
        const std::int64_t unit = std::max<std::int64_t>(1, out_.divisors.of(axis));
        if (machine_.kind == MachineKind::cpu)
            return std::min<std::int64_t>(extent, std::max<std::int64_t>(unit, 64) * factor);
        constexpr std::int64_t usual_group = 128;  // the chunk is chosen before the groups
        double bytes_a_step = 0;
        for (const CoreVariable& v : live_.variables) {
            if (!v.loaded || v.loop < 0 || !contains(axes_of(v.dims), axis)) continue;
            double tile = bytes(derived_.diagram.array(v.array).type);
            for (const AxisId a : axes_of(v.dims))
                if (a != axis)
                    tile *= static_cast<double>(contains(cost_.grouped, a) ? std::min(extents_[a], usual_group)
                                                                           : extents_[a]);
            bytes_a_step += tile;
        }
        const double latency = machine_.levels[0].latency_s.value;
        const double in_flight = latency / core.seconds_per_byte / machine_.cores.value;
        const auto units = std::ceil(in_flight / bytes_a_step / static_cast<double>(unit));
        const std::int64_t most = ceil_div(extent, unit);
        const std::int64_t size = units < static_cast<double>(most)
                                      ? std::max<std::int64_t>(1, static_cast<std::int64_t>(units))
                                      : most;
        return std::min(saturating_mul(size, saturating_mul(unit, factor)), extent);
    }

    void find_splits() {
        std::vector<const Loop*> loops;
        for (const Stage& stage : kernel_.stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) loops.push_back(loop);
        // A plan has its parts as kernels of their own.
        if (options_.planned || options_.whole || loops.size() != 1 || kernel_.folds.empty()) return;
        can_split_ = true;
        for (const auto& [state, init] : loops[0]->init) {
            double tile = bytes(derived_.diagram.array(state).type);
            for (const AxisId axis : derived_.diagram.array(state).axes) tile *= static_cast<double>(extents_[axis]);
            state_bytes_ += tile;
        }
    }
    /// What the outermost cache lets through when several traversals read the same and it does not hold that.
    void find_again(const ModelLevel& level) {
        if (!(level.capacity_bytes > 0) || once_.transfers(smallest()) == sized_.transfers(smallest())) return;
        SearchOptions search;
        search.memory = level.memory_bytes;
        again_ = level;
        again_seconds_ = search_sizes(sized_, search).transfers * level.sustained_seconds_per_byte;
    }
    [[nodiscard]] SizedCost::Sizes smallest() const { return SizedCost::Sizes(sized_.num_sizes(), 1); }

    /// Seconds of a first load, through all levels.
    [[nodiscard]] double latency_s(const std::vector<ModelLevel>& levels) const {
        double seconds = machine_.levels[0].latency_s.value;
        for (const ModelLevel& level : levels) seconds += level.latency_s;
        return seconds;
    }
    /// Into how many parts the stream may be cut for cores that would be idle: at most one a chunk.
    [[nodiscard]] double most_splits(const SizedCost::Sizes& sizes) const {
        const double groups = sized_.num_groups(sizes);
        if (!can_split_ || groups >= cores_) return 1;
        const std::size_t stream = cost_.grouped.size();
        const double chunks = std::ceil(static_cast<double>(sized_.extent(stream)) / static_cast<double>(sizes[stream]));
        return std::max(1.0, std::min(std::floor(cores_ / groups), chunks));
    }
    /// The number of parts with the least time: merging costs a kernel's launch and latency, and moves every state out
    /// and in.
    [[nodiscard]] double best_splits(const SizedCost::Sizes& sizes) const {
        double best = 1, least = seconds_at(sizes, 1);
        for (double parts = most_splits(sizes); parts > 1; parts = std::floor(parts / 2)) {
            const double seconds = seconds_at(sizes, parts);
            if (seconds < least) least = seconds, best = parts;
        }
        return best;
    }
    [[nodiscard]] double seconds_at(const SizedCost::Sizes& sizes, double splits) const {
        const double tasks = sized_.num_groups(sizes) * splits;
        double longest = sized_.transfers(sizes) * core_weight_ * std::max(1.0, cores_ / tasks);
        longest = std::max(longest, longest_pipe(sizes, splits) * wave_of(tasks)) + starts_s(sizes, splits);
        return splits > 1 ? longest + 2 * splits * state_bytes_ * memory_weight_ + merge_s_ : longest;
    }
    /// A caching level holds all that the groups at work load, so that a second traversal finds it there.
    [[nodiscard]] bool held_by(const ModelLevel& level, const SizedCost::Sizes& sizes) const {
        if (!(level.capacity_bytes > 0)) return false;
        const double groups = once_.num_groups(sizes), at_work = std::min(groups, cores_ / level.nodes);
        return once_.transfers(sizes) / groups * at_work <= level.capacity_bytes;
    }
    /// How much longer than with every core busy all the time.
    [[nodiscard]] double wave_of(double tasks) const { return std::ceil(tasks / cores_) * cores_ / tasks; }
    [[nodiscard]] double idle_of(const SizedCost::Sizes& sizes) const {
        return cores_ / (sized_.num_groups(sizes) * out_.splits);
    }
    /// Whether a core has a second group at work, which computes while the first one waits.
    [[nodiscard]] bool has_another(const SizedCost::Sizes& sizes, double splits) const {
        return sized_.num_groups(sizes) * splits > cores_ && 2 * sized_.memory(sizes) <= core_bytes();
    }
    /// Seconds to start the groups that a core runs one after the other; beside another group's work, they take no time
    /// but at the beginning.
    [[nodiscard]] double starts_s(const SizedCost::Sizes& sizes, double splits) const {
        if (machine_.kind != MachineKind::gpu) return 0;
        const double rounds = std::ceil(sized_.num_groups(sizes) * splits / cores_);
        return machine_.group_s.value * (has_another(sizes, splits) ? 1 : rounds);
    }

    /// Operations of a launch in which so large a share of the chunks runs.
    [[nodiscard]] double operations(const SizedWork& work, const SizedCost::Sizes& sizes, double run_fraction) const {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto extent = static_cast<double>(sized_.extent(i)), size = static_cast<double>(sizes[i]);
            values_[i] = extent / std::ceil(extent / size);
        }
        return work.total(values_) * (work.in_loop ? run_fraction : 1);
    }
    std::size_t pipe_index(const std::string& pipe) {
        const auto index = static_cast<std::size_t>(find(pipes_, pipe) - pipes_.begin());
        if (index == pipes_.size()) pipes_.push_back(pipe);
        return index;
    }
    /// Seconds of the busiest pipe at sustained rates, with every core busy.
    [[nodiscard]] double longest_pipe(const SizedCost::Sizes& sizes, double splits) const {
        pipe_seconds_.assign(pipes_.size(), 0);
        for (const SizedWork& work : work_)
            pipe_seconds_[work.pipe] += operations(work, sizes, out_.run_fraction) / rate_of(work.rate) /
                                        work.sustained * work.overhead;
        for (std::size_t pipe = 0; pipe < pipes_.size(); ++pipe)
            if (pipes_[pipe] == "tensor") pipe_seconds_[pipe] += waits_s(sizes, splits);
        return pipe_seconds_.empty() ? 0 : *max_element(pipe_seconds_);
    }
    [[nodiscard]] double rate_of(const UnitRate& rate) const {
        return rate.per_clock * cores_ * machine_.clock_hz.value;
    }

    void take(const SizedCost::Sizes& sizes) {
        for (std::size_t i = 0; i < cost_.grouped.size(); ++i)
            if (cost_.grouped[i] != cost_.part) out_.group[cost_.grouped[i]] = sizes[i];
        out_.sub = subs_.sizes();
        for (std::size_t i = 0; i < cost_.streamed.size(); ++i)
            out_.stream[cost_.streamed[i]] = sizes[cost_.grouped.size() + i];
        out_.num_groups = sized_.num_groups(sizes);
        out_.splits = best_splits(sizes);
        out_.memory_bytes = memory_.memory(sizes);
        out_.accumulator_bytes = accumulators_.memory(sizes);
        out_.accumulator_capacity = columns_.accumulators.empty() ? 0 : accumulator_capacity_bytes(machine_);
        out_.wave = wave_of(out_.num_groups * out_.splits);
        out_.run_fraction = run_fraction(out_.group, out_.stream);
    }
    /// The share of the chunks that run, for groups and chunks of these sizes.
    [[nodiscard]] double run_fraction(const std::map<AxisId, std::int64_t>& group,
                                      const std::map<AxisId, std::int64_t>& stream) const {
        if (!cost_.may_skip) return 1;
        TileSizes tiles{std::vector<std::int64_t>(extents_.size(), 0), std::vector<std::int64_t>(extents_.size(), 0)};
        for (const auto& [axis, size] : group) tiles.group[axis] = size;
        for (const auto& [axis, size] : stream) tiles.stream[axis] = size;
        const TileCounter counter(derived_.diagram, live_, extents_, tiles, std::int64_t{1} << (options_.quick ? 8 : 14));
        double run = 0, all = 0;
        for (int loop = 0; loop < static_cast<int>(live_.loops.size()); ++loop)
            if (!live_.loops[at(loop)].is_sub)
                run += static_cast<double>(counter.chunks_run(loop)), all += static_cast<double>(counter.chunks(loop));
        return all > 0 ? run / all : 1;
    }

    /// A lower bound in seconds for any schedule. It is the longer of two times. One is that of the busiest unit at its
    /// nominal rate, with every core busy and the fewest operations. The other is that of the compulsory transfers of
    /// the machine's memory at its nominal rate.
    [[nodiscard]] double bound_s(const ModelLevel& outermost) const {
        SizedCost::Sizes whole;
        for (std::size_t i = 0; i < sized_.num_sizes(); ++i) whole.push_back(sized_.extent(i));
        std::map<AxisId, std::int64_t> points_of_groups, points_of_chunks;
        for (const AxisId axis : cost_.grouped) points_of_groups[axis] = 1;
        for (const AxisId axis : cost_.streamed) points_of_chunks[axis] = 1;
        const double fraction = std::min(out_.run_fraction, run_fraction(points_of_groups, points_of_chunks));
        std::map<std::size_t, double> pipes;
        for (const SizedWork& work : work_) pipes[work.pipe] += operations(work, whole, fraction) / rate_of(work.rate);
        Compulsory moved = compulsory_transfers(derived_, kernel_, statements_, extents_);
        moved.loaded_bytes *= fraction;
        // Several devices have as many memories; each has another share of what moves.
        const Level& first = machine_.levels[1];
        const double of_a_device = outermost.seconds_per_byte * first.bandwidth_bytes_per_s.value * first.instances.value;
        // Rates of copies that were measured below the nominal one of loads bound nothing.
        const double at_nominal_rate = (moved.loaded_bytes + moved.stored_bytes) * outermost.seconds_per_byte;
        double bound = std::min(at_nominal_rate, least_seconds_of_moving(machine_, moved) * of_a_device);
        for (const auto& [pipe, seconds] : pipes) bound = std::max(bound, seconds);
        return bound;
    }

    /// Seconds, of all cores together, that instructions take on top of their work where nothing hides it. Each
    /// contraction of a chunk is waited for. Nothing else computes on the core if the group only has the rows of one
    /// instruction and no second group is at work.
    [[nodiscard]] double waits_s(const SizedCost::Sizes& sizes, double splits) const {
        if (has_another(sizes, splits)) return 0;
        const auto size_of = [&](AxisId axis) {
            for (std::size_t i = 0; i < sizes.size(); ++i)
                if ((i < cost_.grouped.size() ? cost_.grouped[i] : cost_.streamed[i - cost_.grouped.size()]) == axis)
                    return static_cast<double>(sizes[i]);
            return static_cast<double>(extents_[axis]);
        };
        double clocks = 0;
        for (const StatementWork& s : statements_) {
            if (s.stream < 0 || !s.contraction) continue;
            const Instruction* instruction = instruction_for(machine_, s.contraction->type);
            if (!instruction) continue;
            const double rows = product<double>(s.contraction->m, [&](AxisId axis) { return size_of(axis); });
            if (rows > static_cast<double>(instruction->m.to)) continue;
            clocks += std::ceil(static_cast<double>(extents_[s.stream]) / size_of(s.stream)) *
                      instruction->overhead_clocks.value;
        }
        return out_.run_fraction * sized_.num_groups(sizes) * clocks / (cores_ * machine_.clock_hz.value);
    }

    void finish(const std::vector<ModelLevel>& levels, const SizedCost::Sizes& sizes) {
        const std::size_t looked_at = options_.quick ? core_ + 1 : levels.size();
        for (std::size_t l = 0; l < looked_at; ++l) {
            LevelLoad load{levels[l], {}, 0, 0, 0, 0};
            SizedCost::Sizes outer = sizes;
            // Below the core's memory: its group as it is where accumulators lie there or it fits, else cut further.
            const bool as_it_is = l > core_ &&
                                  (out_.accumulator_capacity > 0 || levels[l].memory_bytes >= out_.memory_bytes);
            if (l != core_ && !as_it_is) {
                SearchOptions search;
                // A caching level holds what its children hold in fact (Theorem 2).
                search.memory = levels[l].rule == LevelRule::cache
                                    ? levels[l].memory_bytes / out_.core_bytes * sized_.memory(sizes)
                                    : levels[l].memory_bytes;
                // Devices all have work, and cuts only go further down.
                if (l > core_) search.least_groups = out_.num_groups;
                if (levels[l].nodes == static_cast<double>(options_.levels.devices))
                    search.least_groups = levels[l].nodes;
                for (const AxisId axis : cost_.streamed) search.stream[axis] = l < core_ ? out_.stream[axis] : 1;
                const SearchResult found = search_sizes(sized_, search);
                outer = found.sizes;
            }
            for (std::size_t i = 0; i < cost_.grouped.size(); ++i)
                if (cost_.grouped[i] != cost_.part) load.group[cost_.grouped[i]] = outer[i];
            // The children of an outer level hold its groups in both places.
            if (l <= core_ || out_.accumulator_capacity == 0) load.memory_bytes = memory_.memory(outer);
            if (l != core_) load.memory_bytes += accumulators_.memory(outer);
            // Parts that run at the same time find what they have in common in a cache that they share.
            load.transfers_bytes = (l < core_ ? parts_together_ : sized_).transfers(outer);
            if (held_by(levels[l], sizes))
                load.transfers_bytes = std::min(load.transfers_bytes, once_.transfers(outer));
            load.transfers_bytes *= (cost_.may_skip ? skipped_share(outer) : 1);
            if (l <= core_ && out_.splits > 1) load.transfers_bytes += 2 * out_.splits * state_bytes_;
            const double idle = l >= core_ ? std::max(1.0, idle_of(sizes)) : 1;
            load.seconds = load.transfers_bytes * levels[l].seconds_per_byte * idle;
            load.expected_s = load.transfers_bytes * levels[l].sustained_seconds_per_byte * idle;
            out_.levels.push_back(std::move(load));
        }
        std::map<std::pair<std::string, std::string>, UnitLoad> units;
        UnitLoad* tensor = nullptr;
        for (const SizedWork& work : work_) {
            UnitLoad& unit = units[{pipes_[work.pipe], fmt::format("{} {}", work.rate.unit, name(work.rate.type))}];
            const double count = operations(work, sizes, out_.run_fraction), nominal_s = count / rate_of(work.rate);
            unit.pipe = pipes_[work.pipe];
            unit.rate = work.rate;
            unit.operations += count;
            unit.seconds += nominal_s;
            unit.overhead_s += nominal_s / work.sustained * (work.overhead - 1);
            unit.expected_s += nominal_s / work.sustained * work.overhead;
            out_.flops += count * work.flops_each;
            if (unit.pipe == "tensor") tensor = &unit;
        }
        if (tensor) {
            const double waits = waits_s(sizes, out_.splits);
            tensor->overhead_s += waits, tensor->expected_s += waits;
        }
        for (auto& [key, unit] : units) out_.units.push_back(unit);

        std::map<std::string, double> pipes;
        for (const UnitLoad& unit : out_.units) pipes[unit.pipe] += unit.expected_s * out_.wave;
        for (const auto& [pipe, seconds] : pipes) out_.ceilings.push_back({pipe, seconds, ""});
        // The two entries of several devices are one transfer, what crosses between them; so are those of cores that
        // exchange data.
        double between = 0, joined = 0;
        std::string link;
        for (const LevelLoad& load : out_.levels) {
            const std::string& into = load.level.name;
            if (load.level.rule == LevelRule::devices) {
                between += load.expected_s;
                if (link.empty()) link = into;
            } else if (load.level.rule == LevelRule::link) {
                joined += load.expected_s;
                if (load.level.is_core) out_.ceilings.push_back({"into " + into, std::max(0.0, joined), into});
            } else {
                out_.ceilings.push_back({"into " + into, load.expected_s, into});
            }
        }
        if (!link.empty()) out_.ceilings.push_back({link, std::max(0.0, between), ""});
        stable_sort(out_.ceilings, [](const Ceiling& a, const Ceiling& b) { return a.seconds > b.seconds; });
        out_.latency_s = latency_s(levels);
        out_.launch_s = machine_.launch_s.value * (out_.splits > 1 ? 2 : 1);
        out_.starts_s = starts_s(sizes, out_.splits);
        const double longest = out_.ceilings.empty() ? 0 : out_.ceilings[0].seconds;
        out_.seconds = longest + out_.latency_s + out_.launch_s + out_.starts_s;
        out_.bound_by = out_.ceilings.empty() ? "launch" : out_.ceilings[0].what;
        if (out_.latency_s > longest) out_.bound_by = "latency";
        if (out_.launch_s > std::max(longest, out_.latency_s)) out_.bound_by = "launch";
        if (out_.ceilings.size() > 1 && out_.ceilings[1].seconds > 0) out_.margin = longest / out_.ceilings[1].seconds;
    }

    /// The share of H that is left when skipped chunks move nothing: that of the chunks, for what is loaded in the
    /// loop.
    [[nodiscard]] double skipped_share(const SizedCost::Sizes& sizes) const {
        Size streamed;
        for (const ArrayTransfers& a : cost_.arrays) streamed += in_loop(a) ? a.per_launch : Size();
        const CompiledSize compiled(streamed, symbols_);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto extent = static_cast<double>(sized_.extent(i)), size = static_cast<double>(sizes[i]);
            values_[i] = extent / std::ceil(extent / size);
        }
        const double loop = compiled(values_), all = sized_.transfers(sizes);
        return all > 0 ? 1 - loop / all * (1 - out_.run_fraction) : 1;
    }
    [[nodiscard]] bool in_loop(const ArrayTransfers& a) const {
        const std::vector<Symbol> symbols = a.per_group.symbols();
        return !a.stored && any_of(cost_.streamed, [&](AxisId axis) { return contains(symbols, axis_symbol(axis)); });
    }

    [[nodiscard]] std::string sizes_text(const SizedCost::Sizes& sizes) const {
        std::string text;
        for (std::size_t i = 0; i < cost_.grouped.size(); ++i)
            text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", derived_.diagram.axis(cost_.grouped[i]).name, sizes[i]);
        return text;
    }

    /// The column that takes the largest share of its place.
    struct FullColumn {
        std::string at;    ///< its statement
        std::string text;  ///< "297600 bytes", "524288 bytes of accumulators"
        std::string most;  ///< what there is: "232448 bytes, what a core has in SMEM"
    };
    [[nodiscard]] FullColumn largest_column(const SizedCost::Sizes& sizes) const {
        FullColumn full;
        double largest = -1;
        const auto look = [&](const std::vector<MemoryColumn>& columns, double capacity, const char* what,
                              const std::string& place) {
            for (const MemoryColumn& column : columns) {
                const double bytes = SizedCost(holding({column}), extents_).memory(sizes);
                if (bytes / capacity <= largest) continue;
                largest = bytes / capacity;
                full = {column.at, fmt::format("{:.0f} bytes{}", bytes, what),
                        fmt::format("{:.0f} bytes, {}", capacity, place)};
            }
        };
        look(columns_.memory, out_.core_bytes, "",
             "what a core has in " + machine_.levels[core_memory_level(machine_)].name);
        look(columns_.accumulators, accumulator_capacity_bytes(machine_), " of accumulators",
             "what a core has for them");
        return full;
    }
    [[nodiscard]] Diagnostic does_not_fit(const SearchResult& best) const {
        Diagnostic d{.code = "memory-exceeded", .range = derived_.diagram.range};
        const std::string sizes = sizes_text(best.sizes);
        const FullColumn full = largest_column(best.sizes);
        d.message = fmt::format("kernel {} fits {} at no tile: at {} the smallest groups{} take {}", kernel_.name,
                                machine_.name, full.at, sizes.empty() ? "" : " (" + sizes + ")", full.text);
        d.expected = "at most " + full.most;
        d.hint = "cut an axis that runs whole (a smaller size with --set, or another axis with --stream)";
        return d;
    }

    const Derived& derived_;
    const Kernel& kernel_;
    const Extents& extents_;
    const Machine& machine_;
    const MachineCostOptions& options_;
    TileKernel tiles_;
    std::vector<AxisId> grouped_;
    Liveness live_;
    SubSizes subs_;
    std::vector<StatementWork> statements_;
    CoreColumns columns_;
    KernelCost cost_;
    SizedCost sized_, memory_, accumulators_, once_, parts_together_;
    double cores_ = 1, state_bytes_ = 0, core_weight_ = 0, memory_weight_ = 0, merge_s_ = 0;
    bool can_split_ = false;
    std::size_t core_ = 0;
    std::vector<Symbol> symbols_;
    mutable std::vector<double> values_;
    ModelLevel again_;
    double again_seconds_ = 0;
    std::vector<std::string> pipes_;
    mutable std::vector<double> pipe_seconds_;
    std::vector<SizedWork> work_;
    KernelOnMachine out_;
};

}  // namespace

double KernelOnMachine::memory_transfers_bytes() const {
    for (const LevelLoad& load : levels)
        if (load.level.rule != LevelRule::devices) return load.transfers_bytes;
    return 0;
}

Result<KernelOnMachine> cost_on_machine(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                        const Machine& machine, const MachineCostOptions& options) {
    return MachineCost(derived, kernel, extents, machine, options).run();
}

}  // namespace napkin
