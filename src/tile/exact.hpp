#pragma once
// Exact counts of a kernel with numbers. Arithmetic on the extents of tiles gives what the interpreter counts by
// execution.
//
// A grouped axis has full tiles and at most one ragged tile, and so has an axis that a loop cuts into K blocks. Each
// count is a sum over the combinations of the two, times how often each occurs. Two kinds of axes are walked tile by
// tile:
//  - axes in a loop's support, since the K blocks that run form one interval for each of their tiles;
//  - axes of boxes whose size depends on the tile's position (diagram/box.hpp). Their indices are quotients or
//    remainders, or reach past the array, and only values inside the array are moved.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "diagram/sizes.hpp"
#include "support/function_ref.hpp"
#include "support/ranges.hpp"
#include "tile/counts.hpp"
#include "tile/liveness.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// The K blocks of a loop that run in the tiles of the axes in its support.
struct RunningKBlocks {
    /// Tiles that have the same ragged axes, and the K blocks that run in them.
    struct Case {
        std::vector<bool> ragged = {};                     ///< by axis of the support
        std::map<std::int64_t, std::int64_t> chunks = {};  ///< number of K blocks that run, by size
    };
    std::vector<Case> cases;  ///< those in which a K block runs
    /// number of tiles of those axes, by the number of their K blocks that run
    std::map<std::int64_t, std::int64_t> tiles_by_chunks;
};

/// Cache of counts that need a walk over tiles, shared by all who count the same kernel with the same extents. Any
/// number of threads may use it.
class KnownCounts {
public:
    /// The count for `question`, which holds all that the count depends on besides the kernel. A miss computes it by
    /// `find`.
    std::int64_t of(std::vector<std::int64_t> question, const std::function<std::int64_t()>& find);
    /// The same for K blocks that run.
    std::shared_ptr<const RunningKBlocks> running(std::vector<std::int64_t> question,
                                                  const std::function<RunningKBlocks()>& find);

private:
    std::mutex mutex_;
    std::map<std::vector<std::int64_t>, std::int64_t> known_;
    std::map<std::vector<std::int64_t>, std::shared_ptr<const RunningKBlocks>> running_;
};

/// A kernel under one partition. Holds references to the diagram, the liveness and the extents, which must outlive it.
class TileCounter {
public:
    using Numbers = std::vector<std::int64_t>;
    using Tiles = FunctionRef<void(const Numbers& tile, std::int64_t count)>;
    using Places = FunctionRef<void(const Numbers& begin, const Numbers& tile, std::int64_t count)>;
    using Groups = FunctionRef<void(const Numbers& chunks, std::int64_t count)>;

    /// With more than `walk_limit` tiles to walk, evenly spread tiles stand for the rest, and counts are estimates.
    /// Where `sizes` belong to a level above the core, `core` has the K blocks that the stream's parts consist of. The
    /// cache `known` is of this kernel and outlives the counter.
    TileCounter(const Diagram& diagram, const Liveness& live, const Extents& extents, const TileSizes& sizes,
                std::int64_t walk_limit = std::int64_t{1} << 22, const TileSizes* core = nullptr,
                KnownCounts* known = nullptr);

    [[nodiscard]] std::int64_t groups() const;
    /// Calls f(extent of every axis in the tile, number of such tiles) for every kind of tile that differs in one of
    /// `axes`. Tiles come from the groups, and from the iterations that run of `loop` (-1: none) and of the loops
    /// around it. An axis counts as whole unless these loops cut it, or it is grouped and in `axes`.
    void for_each_tile(const std::vector<AxisId>& axes, int loop, Tiles f) const;
    /// Calls f(begin and extent of every axis in the tile, number of such tiles) for the tiles that differ in their
    /// position along `axes`. Otherwise like for_each_tile.
    void for_each_place(const std::vector<AxisId>& axes, int loop, Places f) const;
    /// Points of the axes, over all groups and all iterations that run of the loop (-1: none).
    [[nodiscard]] std::int64_t points(const std::vector<AxisId>& axes, int loop) const;
    /// Values of the variable that are moved, over all groups and iterations that move it.
    /// Pre: with a cache of known counts, `v` is an element of the kernel's liveness.
    [[nodiscard]] std::int64_t moved(const CoreVariable& v) const;
    /// Calls f(K blocks that run, by loop; number of such groups) for the groups that differ in how many run. A subloop
    /// has 0.
    void for_each_group(Groups f) const;
    /// The stream's loop among the loop and those around it, or -1.
    [[nodiscard]] int stream_of(int loop) const;
    /// K blocks that run, over all groups
    [[nodiscard]] std::int64_t chunks_run(int loop) const { return points({}, loop); }
    [[nodiscard]] std::int64_t chunks(int loop) const;  ///< K blocks, run or skipped
    /// The most values alive at one of the moments.
    [[nodiscard]] std::int64_t peak_memory(const std::vector<Moment>& moments) const;
    [[nodiscard]] std::int64_t peak_memory() const { return peak_memory(live_.moments); }
    [[nodiscard]] Counts costs() const;

    /// Size of an axis in a full tile: of the K block where a loop (-1: none) cuts the axis, else of the group.
    [[nodiscard]] std::int64_t cut(AxisId axis, int loop) const;

private:
    using Case = RunningKBlocks::Case;
    struct KBlockRuns {
        std::vector<AxisId> axes;  ///< the grouped axes in the support
        std::shared_ptr<const RunningKBlocks> running;
    };
    /// A half-open interval of K block numbers. Number 0 begins where the group's stretch of the stream begins.
    struct ChunkRange {
        std::int64_t begin = 0, end = 0;
        Stretch stretch;
        std::int64_t size = 1;
        [[nodiscard]] std::int64_t from(std::int64_t chunk) const { return stretch.begin + chunk * size; }
        [[nodiscard]] std::int64_t size_of(std::int64_t chunk) const {
            return std::min(size, stretch.end - from(chunk));
        }
    };
    [[nodiscard]] std::int64_t extent(AxisId axis) const { return extents_[axis]; }
    [[nodiscard]] bool is_grouped(AxisId axis) const { return sizes_.group[axis] > 0; }
    [[nodiscard]] std::int64_t num_tiles(AxisId axis) const;
    [[nodiscard]] const CoreLoop& loop(int id) const { return live_.loops[at(id)]; }
    /// The subloops among the loop and those around it, outermost first.
    [[nodiscard]] std::vector<int> subloops_of(int loop) const;
    /// The grouped axis is among `axes` or cut by the subloops.
    [[nodiscard]] bool is_asked(AxisId axis, const std::vector<AxisId>& axes, const std::vector<int>& subloops) const {
        return contains(axes, axis) || any_of(subloops, [&](int sub) { return loop(sub).axis == axis; });
    }
    [[nodiscard]] KBlockRuns count_runs(const CoreLoop& loop) const;
    [[nodiscard]] RunningKBlocks count_running(const CoreLoop& loop, const std::vector<AxisId>& axes) const;
    /// The stretch of the loop's stream that the parts [first, last) cover. All of it where it is not cut into parts.
    [[nodiscard]] Stretch stretch_of(const CoreLoop& loop, std::int64_t first, std::int64_t last) const;
    /// The K blocks of the loop that run in a group, out of those of the group's part. In each of them, every form of
    /// the support is ≥ 0 somewhere.
    [[nodiscard]] ChunkRange k_blocks_in(const CoreLoop& loop, const std::vector<std::int64_t>& begin,
                                         const std::vector<std::int64_t>& tile) const;
    /// Calls f(begin, tile, how often) for the tiles of these grouped axes; other axes run whole.
    template <class F>
    void walk_groups(const std::vector<AxisId>& axes, const F& f) const;
    [[nodiscard]] std::int64_t peak_by_place(const Moment& moment, const std::vector<AxisId>& axes) const;
    [[nodiscard]] std::int64_t moved_by_place(const CoreVariable& v) const;
    [[nodiscard]] bool depends_on_place(const CoreVariable& v) const;
    [[nodiscard]] bool depends_on_place(const CoreVariable& v, std::size_t dimension) const;

    const Diagram& diagram_;
    const Liveness& live_;
    const Extents& extents_;
    TileSizes sizes_;
    std::int64_t walk_limit_;
    KnownCounts* known_;
    std::int64_t part_k_block_ = 1;  ///< K block of which the stream's parts consist
    std::vector<AxisId> grouped_;
    std::vector<KBlockRuns> runs_;  ///< by loop
};

Counts exact_costs(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes);
Counts exact_costs(const SizedProgram& program, std::size_t kernel);

}  // namespace napkin
