#pragma once
// Exact counts of a kernel for numbers: what the tile interpreter counts by executing, by arithmetic on the extents of
// tiles.
//
// A grouped axis has full tiles and at most one ragged tile, and so has a chunked axis; everything counted is a sum
// over the combinations of the two, times how often each occurs. Two kinds of axes are walked tile by tile: those in a
// loop's support, since the chunks that run form one interval for each tile of them, and those of boxes whose size
// depends on where the tile stands (diagram/box.hpp): quotients and rests, and what reaches past the array, of which
// only the values inside of it are moved.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "diagram/sizes.hpp"
#include "support/ranges.hpp"
#include "tile/counts.hpp"
#include "tile/liveness.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// Counts that take a walk over tiles, kept for all who count the same kernel of the same extents: any number of
/// threads may ask.
class KnownCounts {
public:
    /// The count of which the numbers say all that it follows from beside the kernel, by `find` for the first who asks.
    std::int64_t of(std::vector<std::int64_t> question, const std::function<std::int64_t()>& find);

private:
    std::mutex mutex_;
    std::map<std::vector<std::int64_t>, std::int64_t> known_;
};

/// A kernel under one partition. Holds references: keep it no longer than what it was made from.
class TileCounter {
public:
    /// Where there are more than `walk_limit` tiles to walk, evenly spread ones stand for the rest and counts are
    /// estimates. `core` has the chunks that parts of a stream consist of, where `sizes` are those of a level above it.
    /// `known` is of this kernel and outlives it.
    TileCounter(const Diagram& diagram, const Liveness& live, const Extents& extents, const TileSizes& sizes,
                std::int64_t walk_limit = std::int64_t{1} << 22, const TileSizes* core = nullptr,
                KnownCounts* known = nullptr);

    [[nodiscard]] std::int64_t groups() const;
    /// Calls f(extent of every axis in the tile, how often) for every kind of tile that differs in one of `axes`: of
    /// the groups, and of the iterations that run of the loop (-1: none) and of those around it. Axes that are neither
    /// cut by these nor grouped and in `axes` count as whole.
    void for_each_tile(const std::vector<AxisId>& axes, int loop,
                       const std::function<void(const std::vector<std::int64_t>& tile, std::int64_t count)>& f) const;
    /// Calls f(begin and extent of every axis in the tile, how often) for the tiles that differ in where they stand
    /// along `axes`, and otherwise as for_each_tile does.
    void for_each_place(const std::vector<AxisId>& axes, int loop,
                        const std::function<void(const std::vector<std::int64_t>& begin,
                                                 const std::vector<std::int64_t>& tile, std::int64_t count)>& f) const;
    /// Points of the axes over the groups and the iterations that run of the loop (-1: none).
    [[nodiscard]] std::int64_t points(const std::vector<AxisId>& axes, int loop) const;
    /// Values of the variable that are moved, over all groups and iterations in which they are.
    /// Pre: where there is something known, it is a variable of the kernel's liveness.
    [[nodiscard]] std::int64_t moved(const CoreVariable& v) const;
    /// Calls f(chunks that run, by loop; how often) for the groups that differ in how many run: of a stream's loop, 0
    /// of a subloop.
    void for_each_group(const std::function<void(const std::vector<std::int64_t>& chunks, std::int64_t count)>& f) const;
    /// The stream's loop among the loop and those around it, or -1.
    [[nodiscard]] int stream_of(int loop) const;
    [[nodiscard]] std::int64_t chunks_run(int loop) const { return points({}, loop); }  ///< over all groups
    [[nodiscard]] std::int64_t chunks(int loop) const;                                  ///< run or skipped
    /// The largest sum of the tiles alive at one of the moments that happen, values.
    [[nodiscard]] std::int64_t peak_memory(const std::vector<Moment>& moments) const;
    [[nodiscard]] std::int64_t peak_memory() const { return peak_memory(live_.moments); }
    [[nodiscard]] Counts costs() const;

    /// The size of an axis in a full tile: of the group, or of the chunk where a loop (-1: none) cuts it.
    [[nodiscard]] std::int64_t cut(AxisId axis, int loop) const;

private:
    /// The tiles of the axes in a loop's support that are alike in which of them are ragged, and the chunks that run in
    /// them.
    struct Case {
        std::vector<bool> ragged;                     ///< by KBlockRuns::axes
        std::map<std::int64_t, std::int64_t> chunks;  ///< that run: how many, by size
    };
    struct KBlockRuns {
        std::vector<AxisId> axes;       ///< the grouped axes in the support
        std::vector<Case> cases;        ///< those in which a chunk runs
        std::int64_t other_groups = 1;  ///< tiles of the grouped axes that are not in the support
    };
    /// A half-open interval of chunk numbers, counted from where the group's stretch of the stream begins.
    struct ChunkRange {
        std::int64_t begin = 0, end = 0;
        Stretch stretch;
        std::int64_t size = 1;
        [[nodiscard]] std::int64_t from(std::int64_t chunk) const { return stretch.begin + chunk * size; }
        [[nodiscard]] std::int64_t size_of(std::int64_t chunk) const {
            return std::min(size, stretch.end - from(chunk));
        }
    };
    using Tiles = std::function<void(const std::vector<std::int64_t>& tile, std::int64_t count)>;
    using Places = std::function<void(const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile,
                                      std::int64_t count)>;

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
    /// What the parts [first, last) have of the loop's stream; all of it where it is not cut into parts.
    [[nodiscard]] Stretch stretch_of(const CoreLoop& loop, std::int64_t first, std::int64_t last) const;
    /// The chunks of the loop that run in a group: of its part, those in which no form of the support is negative
    /// everywhere.
    [[nodiscard]] ChunkRange k_blocks_in(const CoreLoop& loop, const std::vector<std::int64_t>& begin,
                                         const std::vector<std::int64_t>& tile) const;
    /// Calls f(begin, tile, how often) for the tiles of these grouped axes; other axes run whole.
    void walk_groups(const std::vector<AxisId>& axes, const Places& f) const;
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
    std::int64_t part_k_block_ = 1;  ///< of which parts of the stream consist
    std::vector<AxisId> grouped_;
    std::vector<KBlockRuns> runs_;  ///< by loop
};

Counts exact_costs(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes);
Counts exact_costs(const SizedProgram& program, std::size_t kernel);

}  // namespace napkin
