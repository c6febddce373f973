#include "cost/on_machine.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cost/accumulators.hpp"
#include "cost/at_sizes.hpp"
#include "cost/compulsory.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
/// The weight of a second of a group's transfers where something else binds. It is too little to outweigh what binds,
/// and enough to decide between sizes that are equally fast.
constexpr double weight_of_hidden_transfers = 1e-3;
/// Chunks of 1, 4 and 16 times the least are tried; longer ones must save a hundredth.
constexpr std::int64_t longest_chunk_factor = 16, chunk_factor_step = 4;
constexpr double worth_longer_chunks = 0.99;

/// What could bind: pipes with every core busy but for the wave, and transfers. The longest first.
std::vector<Ceiling> ceilings_of(const KernelOnMachine& k) {
    std::vector<Ceiling> out;
    std::map<std::string, double> pipes;
    for (const UnitLoad& unit : k.units) pipes[unit.pipe] += unit.expected_s * k.wave;
    for (const auto& [pipe, seconds] : pipes) out.push_back({pipe, seconds, ""});
    // The two entries of several devices are one transfer, what crosses between them; so are those of cores that
    // exchange data.
    double between = 0, joined = 0;
    std::string link;
    for (const LevelLoad& load : k.levels) {
        const std::string& into = load.level.name;
        if (load.level.rule == LevelRule::devices) {
            between += load.expected_s;
            if (link.empty()) link = into;
        } else if (load.level.rule == LevelRule::link) {
            joined += load.expected_s;
            if (load.level.is_core) out.push_back({"into " + into, std::max(0.0, joined), into});
        } else {
            out.push_back({"into " + into, load.expected_s, into});
        }
    }
    if (!link.empty()) out.push_back({link, std::max(0.0, between), ""});
    stable_sort(out, [](const Ceiling& a, const Ceiling& b) { return a.seconds > b.seconds; });
    return out;
}

class MachineCost {
public:
    MachineCost(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine,
                const MachineCostOptions& options)
        : k_(derived, kernel, extents, machine, options) {}

    Result<KernelOnMachine> run() {
        auto levels = model_levels(k_.machine, k_.options.levels);
        if (!levels) return levels.errors();
        core_ = static_cast<std::size_t>(find_if(*levels, [](const ModelLevel& l) { return l.is_core; }) - levels->begin());
        const ModelLevel& core = (*levels)[core_];
        out_.kernel = k_.kernel.name;
        out_.divisors = divisors(k_.derived.diagram, k_.kernel, k_.live, k_.statements, k_.machine);
        out_.core_bytes = tile_bytes_a_core(k_.machine, core_memory_level(k_.machine));

        const ModelLevel& outermost = (*levels)[(*levels)[0].rule == LevelRule::devices ? 2 : 0];
        k_.set_levels(*levels, core, outermost);
        SearchOptions search{.memory = k_.options.planned ? std::numeric_limits<double>::infinity() : out_.core_bytes,
                             .group_divisor = out_.divisors.least_multiple,
                             .fixed = k_.options.group,
                             .coarse = k_.options.quick};
        search.objective = [&](const SizedCost& sized, const SizedCost::Sizes& sizes) {
            // Where something else binds, fewer transfers are better still.
            return std::max(k_.least_seconds_at(sizes),
                            again_.seconds_per_byte > 0 && !k_.held_by(again_, sizes) ? again_seconds_ : 0) +
                   weight_of_hidden_transfers * sized.transfers(sizes) * k_.core_weight;
        };
        find_again((*levels)[0]);
        // Longer chunks repeat less of what is done once a chunk, and take memory from the group.
        SearchResult best;
        for (std::int64_t factor = 1; factor <= (k_.cost.streamed.empty() ? 1 : longest_chunk_factor);
             factor *= chunk_factor_step) {
            for (const AxisId axis : k_.cost.streamed) search.stream[axis] = stream_size(axis, core, factor);
            const SearchResult found = search_sizes(k_.sized, search);
            if (found.fits && (!best.fits || found.objective < worth_longer_chunks * best.objective)) best = found;
            if (!found.fits) break;
        }
        if (!best.fits) {
            // Finer than what the instructions take, before giving up.
            search.group_divisor.clear();
            for (const AxisId axis : k_.cost.streamed)
                search.stream[axis] = k_.options.stream.contains(axis) ? stream_size(axis, core, 1) : 1;
            best = search_sizes(k_.sized, search);
        }
        if (!best.fits) {
            Diagnostic d = does_not_fit(best);
            search.fixed.clear();
            // The user's sizes are to blame if others fit: those that the instructions take, or finer ones.
            SearchResult without = search_sizes(k_.sized, search);
            search.group_divisor = out_.divisors.least_multiple;
            for (const AxisId axis : k_.cost.streamed) search.stream[axis] = stream_size(axis, core, 1);
            if (const SearchResult usual = search_sizes(k_.sized, search); usual.fits) without = usual;
            if (!without.fits || k_.options.group.empty()) return d;
            d.message = fmt::format("kernel {} does not fit {} with the groups that are set: {} take {}", k_.kernel.name,
                                    k_.machine.name, k_.sizes_text(best.sizes), largest_column(best.sizes).text);
            d.hint = k_.sizes_text(nearest_that_fit(search, without.sizes)) + " fits";
            return d;
        }
        take(best.sizes);
        finish(*levels, best.sizes);
        if (!k_.options.quick) out_.bound_s = bound_s(outermost);
        return std::move(out_);
    }

private:
    /// The user's sizes with one axis changed to the largest size that fits beside the others. If several axes would
    /// do, it is the one that keeps the largest share. If no single axis makes the tiles fit, it is `otherwise`: the
    /// sizes that fit without any override.
    [[nodiscard]] SizedCost::Sizes nearest_that_fit(SearchOptions search, const SizedCost::Sizes& otherwise) const {
        SizedCost::Sizes nearest = otherwise;
        double best_share = 0;
        for (const auto& [axis, wanted] : k_.options.group) {
            const std::int64_t step = value_or(search.group_divisor, axis, 1);
            search.fixed = k_.options.group;
            std::int64_t low = 0, high = ceil_div(wanted, step);  // low fits (0: unknown), high does not
            while (low + 1 < high) {
                const std::int64_t middle = low + (high - low) / 2;
                search.fixed[axis] = middle * step;
                const SearchResult found = search_sizes(k_.sized, search);
                (found.fits ? low : high) = middle;
                const double share = static_cast<double>(middle * step) / static_cast<double>(wanted);
                if (found.fits && share > best_share) best_share = share, nearest = found.sizes;
            }
        }
        return nearest;
    }

    /// A chunk is the least that the divisors take, and enough bytes to cover the memory's latency (Little's law).
    [[nodiscard]] std::int64_t stream_size(AxisId axis, const ModelLevel& core, std::int64_t factor) const {
        const std::int64_t extent = k_.extents[axis];
        if (const auto fixed = k_.options.stream.find(axis); fixed != k_.options.stream.end())
            return std::min(fixed->second, extent);
        const std::int64_t unit = std::max<std::int64_t>(1, out_.divisors.of(axis));
        if (k_.machine.kind == MachineKind::cpu)
            return std::min<std::int64_t>(extent, std::max<std::int64_t>(unit, 64) * factor);
        constexpr std::int64_t usual_group = 128;  // the chunk is chosen before the groups
        double bytes_a_step = 0;
        for (const CoreVariable& v : k_.live.variables) {
            if (!v.loaded || v.loop < 0 || !contains(axes_of(v.dims), axis)) continue;
            double tile = bytes(k_.derived.diagram.array(v.array).type);
            for (const AxisId a : axes_of(v.dims))
                if (a != axis)
                    tile *= static_cast<double>(contains(k_.cost.grouped, a) ? std::min(k_.extents[a], usual_group)
                                                                             : k_.extents[a]);
            bytes_a_step += tile;
        }
        const double latency = k_.machine.levels[0].latency_s.value;
        const double in_flight = latency / core.seconds_per_byte / k_.machine.cores.value;
        const auto units = std::ceil(in_flight / bytes_a_step / static_cast<double>(unit));
        const std::int64_t most = ceil_div(extent, unit);
        const std::int64_t size = units < static_cast<double>(most)
                                      ? std::max<std::int64_t>(1, static_cast<std::int64_t>(units))
                                      : most;
        return std::min(saturating_mul(size, saturating_mul(unit, factor)), extent);
    }

    /// What the outermost cache lets through when several traversals read the same and it does not hold that.
    void find_again(const ModelLevel& level) {
        if (!(level.capacity_bytes > 0) || k_.once.transfers(smallest()) == k_.sized.transfers(smallest())) return;
        SearchOptions search;
        search.memory = level.memory_bytes;
        again_ = level;
        again_seconds_ = search_sizes(k_.sized, search).transfers * level.sustained_seconds_per_byte;
    }
    [[nodiscard]] SizedCost::Sizes smallest() const { return SizedCost::Sizes(k_.sized.num_sizes(), 1); }

    void take(const SizedCost::Sizes& sizes) {
        for (std::size_t i = 0; i < k_.cost.grouped.size(); ++i)
            if (k_.cost.grouped[i] != k_.cost.part) out_.group[k_.cost.grouped[i]] = sizes[i];
        out_.sub = k_.subs.sizes();
        for (std::size_t i = 0; i < k_.cost.streamed.size(); ++i)
            out_.stream[k_.cost.streamed[i]] = sizes[k_.cost.grouped.size() + i];
        out_.num_groups = k_.sized.num_groups(sizes);
        out_.splits = k_.best_splits(sizes);
        out_.memory_bytes = k_.memory.memory(sizes);
        out_.accumulator_bytes = k_.accumulators.memory(sizes);
        out_.accumulator_capacity = k_.columns.accumulators.empty() ? 0 : accumulator_capacity_bytes(k_.machine);
        out_.wave = k_.wave_of(out_.num_groups * out_.splits);
        out_.run_fraction = k_.run_fraction = k_.share_that_runs(out_.group, out_.stream);
    }

    /// A lower bound in seconds for any schedule. It is the longer of two times. One is that of the busiest unit at its
    /// nominal rate, with every core busy and the fewest operations. The other is that of the compulsory transfers of
    /// the machine's memory at its nominal rate.
    [[nodiscard]] double bound_s(const ModelLevel& outermost) const {
        SizedCost::Sizes whole;
        for (std::size_t i = 0; i < k_.sized.num_sizes(); ++i) whole.push_back(k_.sized.extent(i));
        std::map<AxisId, std::int64_t> points_of_groups, points_of_chunks;
        for (const AxisId axis : k_.cost.grouped) points_of_groups[axis] = 1;
        for (const AxisId axis : k_.cost.streamed) points_of_chunks[axis] = 1;
        const double fraction = std::min(out_.run_fraction, k_.share_that_runs(points_of_groups, points_of_chunks));
        std::map<std::size_t, double> pipes;
        for (const SizedWork& work : k_.work)
            pipes[work.pipe] += k_.operations(work, whole, fraction) / k_.rate_of(work.rate);
        Compulsory moved = compulsory_transfers(k_.derived, k_.kernel, k_.statements, k_.extents);
        moved.loaded_bytes *= fraction;
        // Several devices have as many memories; each has another share of what moves.
        const Level& first = k_.machine.levels[1];
        const double of_a_device = outermost.seconds_per_byte * first.bandwidth_bytes_per_s.value * first.instances.value;
        // Rates of copies that were measured below the nominal one of loads bound nothing.
        const double at_nominal_rate = (moved.loaded_bytes + moved.stored_bytes) * outermost.seconds_per_byte;
        double bound = std::min(at_nominal_rate, least_seconds_of_moving(k_.machine, moved) * of_a_device);
        for (const auto& [pipe, seconds] : pipes) bound = std::max(bound, seconds);
        return bound;
    }

    /// What moves into each level.
    void add_levels(const std::vector<ModelLevel>& levels, const SizedCost::Sizes& sizes) {
        const std::size_t looked_at = k_.options.quick ? core_ + 1 : levels.size();
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
                                    ? levels[l].memory_bytes / out_.core_bytes * k_.sized.memory(sizes)
                                    : levels[l].memory_bytes;
                // Devices all have work, and cuts only go further down.
                if (l > core_) search.least_groups = out_.num_groups;
                if (levels[l].nodes == static_cast<double>(k_.options.levels.devices))
                    search.least_groups = levels[l].nodes;
                for (const AxisId axis : k_.cost.streamed) search.stream[axis] = l < core_ ? out_.stream[axis] : 1;
                const SearchResult found = search_sizes(k_.sized, search);
                outer = found.sizes;
            }
            for (std::size_t i = 0; i < k_.cost.grouped.size(); ++i)
                if (k_.cost.grouped[i] != k_.cost.part) load.group[k_.cost.grouped[i]] = outer[i];
            // The children of an outer level hold its groups in both places.
            if (l <= core_ || out_.accumulator_capacity == 0) load.memory_bytes = k_.memory.memory(outer);
            if (l != core_) load.memory_bytes += k_.accumulators.memory(outer);
            // Parts that run at the same time find what they have in common in a cache that they share.
            load.transfers_bytes = (l < core_ ? k_.parts_together : k_.sized).transfers(outer);
            if (k_.held_by(levels[l], sizes))
                load.transfers_bytes = std::min(load.transfers_bytes, k_.once.transfers(outer));
            load.transfers_bytes *= k_.share_that_moves(outer);
            if (l <= core_ && out_.splits > 1) load.transfers_bytes += 2 * out_.splits * k_.state_bytes;
            const double idle = l >= core_ ? std::max(1.0, k_.idle_of(sizes, out_.splits)) : 1;
            load.seconds = load.transfers_bytes * levels[l].seconds_per_byte * idle;
            load.expected_s = load.transfers_bytes * levels[l].sustained_seconds_per_byte * idle;
            out_.levels.push_back(std::move(load));
        }
    }

    /// What the units do, and how long it takes them.
    void add_units(const SizedCost::Sizes& sizes) {
        std::map<std::pair<std::string, std::string>, UnitLoad> units;
        UnitLoad* tensor = nullptr;
        for (const SizedWork& work : k_.work) {
            UnitLoad& unit = units[{k_.pipes[work.pipe], fmt::format("{} {}", work.rate.unit, name(work.rate.type))}];
            const double count = k_.operations(work, sizes, out_.run_fraction), nominal_s = count / k_.rate_of(work.rate);
            unit.pipe = k_.pipes[work.pipe];
            unit.rate = work.rate;
            unit.operations += count;
            unit.seconds += nominal_s;
            unit.overhead_s += nominal_s / work.sustained * (work.overhead - 1);
            unit.expected_s += nominal_s / work.sustained * work.overhead;
            out_.flops += count * work.flops_each;
            if (unit.pipe == "tensor") tensor = &unit;
        }
        if (tensor) {
            const double waits = k_.waits_s(sizes, out_.splits);
            tensor->overhead_s += waits, tensor->expected_s += waits;
        }
        for (auto& [key, unit] : units) out_.units.push_back(unit);
    }

    void finish(const std::vector<ModelLevel>& levels, const SizedCost::Sizes& sizes) {
        add_levels(levels, sizes);
        add_units(sizes);
        out_.ceilings = ceilings_of(out_);
        out_.latency_s = k_.latency_s(levels);
        out_.launch_s = k_.machine.launch_s.value * (out_.splits > 1 ? 2 : 1);
        out_.starts_s = k_.starts_s(sizes, out_.splits);
        const double longest = out_.ceilings.empty() ? 0 : out_.ceilings[0].seconds;
        out_.seconds = longest + out_.latency_s + out_.launch_s + out_.starts_s;
        out_.bound_by = out_.ceilings.empty() ? "launch" : out_.ceilings[0].what;
        if (out_.latency_s > longest) out_.bound_by = "latency";
        if (out_.launch_s > std::max(longest, out_.latency_s)) out_.bound_by = "launch";
        if (out_.ceilings.size() > 1 && out_.ceilings[1].seconds > 0) out_.margin = longest / out_.ceilings[1].seconds;
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
                const double bytes = SizedCost(k_.holding({column}), k_.extents).memory(sizes);
                if (bytes / capacity <= largest) continue;
                largest = bytes / capacity;
                full = {column.at, fmt::format("{:.0f} bytes{}", bytes, what),
                        fmt::format("{:.0f} bytes, {}", capacity, place)};
            }
        };
        look(k_.columns.memory, out_.core_bytes, "",
             "what a core has in " + k_.machine.levels[core_memory_level(k_.machine)].name);
        look(k_.columns.accumulators, accumulator_capacity_bytes(k_.machine), " of accumulators",
             "what a core has for them");
        return full;
    }
    [[nodiscard]] Diagnostic does_not_fit(const SearchResult& best) const {
        Diagnostic d{.code = "memory-exceeded", .range = k_.derived.diagram.range};
        const std::string sizes = k_.sizes_text(best.sizes);
        const FullColumn full = largest_column(best.sizes);
        d.message = fmt::format("kernel {} fits {} at no tile: at {} the smallest groups{} take {}", k_.kernel.name,
                                k_.machine.name, full.at, sizes.empty() ? "" : " (" + sizes + ")", full.text);
        d.expected = "at most " + full.most;
        d.hint = "cut an axis that runs whole (a smaller size with --set, or another axis with --stream)";
        return d;
    }

    CostAtSizes k_;
    std::size_t core_ = 0;
    ModelLevel again_;
    double again_seconds_ = 0;
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
