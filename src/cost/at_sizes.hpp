#pragma once
// What a kernel costs on a machine at any sizes of its groups and chunks: transfers, memory, and the expected time.
#include <map>
#include <string>
#include <vector>

#include "cost/accumulators.hpp"
#include "cost/compiled_size.hpp"
#include "cost/on_machine.hpp"
#include "cost/sub_sizes.hpp"
#include "tile/liveness.hpp"

namespace napkin {

/// Work at numbers: operations of each row of unit_work.
struct SizedWork {
    std::size_t pipe;  ///< index into CostAtSizes::pipes
    UnitRate rate;
    CompiledSize total;
    bool in_loop;
    int flops_each;
    double sustained;  ///< share of the nominal rate
    double overhead;   ///< factor: 1 and what comes beside the operations
};

class CostAtSizes {
public:
    CostAtSizes(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine,
                const MachineCostOptions& options);

    /// What times depend on: the core's level, and the outermost one that moves data.
    void set_levels(const std::vector<ModelLevel>& levels, const ModelLevel& core, const ModelLevel& outermost);
    [[nodiscard]] double core_bytes() const { return bytes_a_core(machine, core_memory_level(machine)); }
    /// With the memory of these columns alone.
    [[nodiscard]] KernelCost holding(const std::vector<MemoryColumn>& held) const;
    /// Seconds of a first load, through all levels.
    [[nodiscard]] double latency_s(const std::vector<ModelLevel>& levels) const;
    /// The number of parts with the least time: merging costs a kernel's launch and latency, and moves every state out
    /// and in.
    [[nodiscard]] double best_splits(const SizedCost::Sizes& sizes) const { return best_of(sizes).splits; }
    /// With that number of parts.
    [[nodiscard]] double least_seconds_at(const SizedCost::Sizes& sizes) const { return best_of(sizes).seconds; }
    /// With the stream in so many parts.
    [[nodiscard]] double seconds_at(const SizedCost::Sizes& sizes, double splits) const;
    /// A caching level holds all that the groups at work load, so that a second traversal finds it there.
    [[nodiscard]] bool held_by(const ModelLevel& level, const SizedCost::Sizes& sizes) const;
    /// How much longer than with every core busy all the time.
    [[nodiscard]] double wave_of(double tasks) const;
    /// How many times as long as with every core busy.
    [[nodiscard]] double idle_of(const SizedCost::Sizes& sizes, double splits) const;
    /// Whether a core has a second group at work, which computes while the first one waits.
    [[nodiscard]] bool has_another(const SizedCost::Sizes& sizes, double splits) const;
    /// Seconds to start the groups that a core runs one after the other; beside another group's work, they take no time
    /// but at the beginning.
    [[nodiscard]] double starts_s(const SizedCost::Sizes& sizes, double splits) const;
    /// Operations of a launch in which so large a share of the chunks runs.
    [[nodiscard]] double operations(const SizedWork& of, const SizedCost::Sizes& sizes, double share_of_chunks) const;
    /// Operations a second of all cores.
    [[nodiscard]] double rate_of(const UnitRate& rate) const;
    /// The share of the chunks that run, for groups and chunks of these sizes.
    [[nodiscard]] double share_that_runs(const std::map<AxisId, std::int64_t>& group,
                                         const std::map<AxisId, std::int64_t>& stream) const;
    /// Seconds, of all cores together, that instructions take on top of their work where nothing hides it. Each
    /// contraction of a chunk is waited for. Nothing else computes on the core if the group only has the rows of one
    /// instruction and no second group is at work.
    [[nodiscard]] double waits_s(const SizedCost::Sizes& sizes, double splits) const;
    /// The share of H that is left when skipped chunks move nothing: that of the chunks, for what is loaded in the
    /// loop.
    [[nodiscard]] double share_that_moves(const SizedCost::Sizes& sizes) const;
    [[nodiscard]] std::string sizes_text(const SizedCost::Sizes& sizes) const;

    const Derived& derived;
    const Kernel& kernel;
    const Extents& extents;
    const Machine& machine;
    const MachineCostOptions& options;
    TileKernel tiles;
    std::vector<AxisId> grouped;
    Liveness live;
    SubSizes subs;
    std::vector<StatementWork> statements;
    CoreColumns columns;
    KernelCost cost;
    SizedCost sized, memory, accumulators, once, parts_together;
    double cores = 1, state_bytes = 0, core_weight = 0;
    double run_fraction = 1;  ///< of the chunks, those that are not skipped
    std::vector<std::string> pipes;
    std::vector<SizedWork> work;

private:
    /// M of all that a core holds, in the measure of its memory: accumulators count as large a share of it as they take
    /// of their own place.
    [[nodiscard]] KernelCost with_columns(KernelCost plain) const;
    /// The cost of groups that run all parts of their stream: what the parts have in common they load once.
    [[nodiscard]] KernelCost together() const;
    void find_splits();
    struct BestSplits {
        double splits, seconds;
    };
    [[nodiscard]] BestSplits best_of(const SizedCost::Sizes& sizes) const;
    /// Into how many parts the stream may be cut for cores that would be idle: at most one a chunk.
    [[nodiscard]] double most_splits(const SizedCost::Sizes& sizes) const;
    std::size_t pipe_index(const std::string& pipe);
    /// Seconds of the busiest pipe at sustained rates, with every core busy.
    [[nodiscard]] double longest_pipe(const SizedCost::Sizes& sizes, double splits) const;
    /// With each size as its axis divided by the number of tiles.
    [[nodiscard]] double value_at(const CompiledSize& size, const SizedCost::Sizes& sizes) const;

    double memory_weight = 0, merge_s = 0;
    bool can_split = false;
    std::vector<Symbol> symbols;
    mutable std::vector<double> values, pipe_seconds;
};

}  // namespace napkin
