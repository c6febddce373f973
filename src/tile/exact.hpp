#pragma once
// Exact counts of a kernel for numbers: what the tile interpreter counts by executing, by arithmetic on the extents of tiles.
//
// A grouped axis has full tiles and at most one ragged tile, and so has a chunked axis; everything counted is a sum over the
// combinations of the two, times how often each occurs. Two kinds of axes are walked tile by tile: those in a loop's support, since the
// chunks that run form one interval for each tile of them, and those of boxes whose size depends on where the tile stands (diagram/box.hpp):
// quotients and rests, and what reaches past the array, of which only the values inside of it are moved.
#include <cstdint>
#include <functional>
#include <vector>

#include "diagram/sizes.hpp"
#include "tile/counts.hpp"
#include "tile/liveness.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// Counts saturate at 2^62.
struct ExactCosts {
    std::int64_t groups = 1;
    std::vector<ArrayCount> arrays;                   ///< ascending by ArrayId
    std::int64_t loaded = 0, stored = 0;              ///< values
    std::int64_t loaded_bytes = 0, stored_bytes = 0;  ///< in the types that the arrays have in memory
    std::int64_t chunks_run = 0, chunks_skipped = 0;  ///< over all loops and groups
    std::int64_t peak_memory = 0;                     ///< M, values
    [[nodiscard]] std::int64_t transfers() const;     ///< H
    friend bool operator==(const ExactCosts&, const ExactCosts&) = default;
};

/// A kernel under one partition. Holds references: keep it no longer than what it was made from.
class TileCounter {
public:
    /// Where there are more than `walk_limit` tiles to walk, evenly spread ones stand for the rest and counts are estimates.
    TileCounter(const Derived& derived, const Kernel& kernel, const Liveness& live, const Extents& extents,
                TileSizes sizes, std::int64_t walk_limit = std::int64_t{1} << 22);

    [[nodiscard]] std::int64_t groups() const;
    /// Calls f(extent of every axis in the tile, how often) for every kind of tile that differs in one of `axes`: of the groups, and, when
    /// `stage` is a loop's (else -1), of the chunks that run in them. Axes that are neither grouped nor in `axes` count as whole.
    void for_each_tile(const std::vector<AxisId>& axes, int stage,
                       const std::function<void(const std::vector<std::int64_t>& tile, std::int64_t count)>& f) const;
    /// Calls f(begin and extent of every axis in the tile, how often) for the tiles that differ in where they stand along `axes`, and
    /// otherwise as for_each_tile does.
    void for_each_place(const std::vector<AxisId>& axes, int stage,
                        const std::function<void(const std::vector<std::int64_t>& begin,
                                                 const std::vector<std::int64_t>& tile, std::int64_t count)>& f) const;
    /// Points of the axes over the groups, and over the chunks that run when `stage` is a loop's (-1: none).
    [[nodiscard]] std::int64_t points(const std::vector<AxisId>& axes, int stage) const;
    /// Values of the variable that are moved, over all groups and chunks in which they are.
    [[nodiscard]] std::int64_t moved(const CoreVariable& v) const;
    [[nodiscard]] std::int64_t chunks_run(int stage) const;                                ///< over all groups
    [[nodiscard]] std::int64_t chunks(int stage) const;                                    ///< run or skipped
    [[nodiscard]] std::int64_t peak_memory() const { return peak_memory(live_.moments); }  ///< values
    /// The largest sum of the tiles alive at one of the moments that happen.
    [[nodiscard]] std::int64_t peak_memory(const std::vector<Moment>& moments) const;
    [[nodiscard]] ExactCosts costs() const;

    /// The size of an axis in a full tile: of the group, or of the chunk where it is the axis of the stage's loop.
    [[nodiscard]] std::int64_t cut(AxisId axis, int stage) const;

private:
    /// The tiles of the axes in a loop's support that are alike in which of them are ragged, and the chunks that run in them.
    struct Case {
        std::vector<bool> ragged;         ///< by ChunkRuns::axes
        std::int64_t full = 0, last = 0;  ///< chunks that run: full ones, and ragged last ones
    };
    struct ChunkRuns {
        std::vector<AxisId> axes;       ///< the grouped axes in the support
        std::vector<Case> cases;        ///< those in which a chunk runs
        std::int64_t other_groups = 1;  ///< tiles of the grouped axes that are not in the support
    };

    [[nodiscard]] std::int64_t extent(AxisId axis) const { return extents_[static_cast<std::size_t>(axis)]; }
    [[nodiscard]] bool is_grouped(AxisId axis) const { return sizes_.group[static_cast<std::size_t>(axis)] > 0; }
    [[nodiscard]] std::int64_t num_tiles(AxisId axis) const;
    [[nodiscard]] AxisId loop_axis(int stage) const;
    [[nodiscard]] ChunkRuns count_runs(const Loop& loop) const;
    /// Calls f(begin, tile, how often) for the tiles of these grouped axes; other axes run whole.
    void walk_groups(const std::vector<AxisId>& axes,
                     const std::function<void(const std::vector<std::int64_t>& begin,
                                              const std::vector<std::int64_t>& tile, std::int64_t count)>& f) const;
    [[nodiscard]] std::int64_t peak_by_place(const Moment& moment, const std::vector<AxisId>& axes) const;
    [[nodiscard]] bool depends_on_place(const CoreVariable& v) const;
    [[nodiscard]] bool depends_on_place(const CoreVariable& v, std::size_t dimension) const;

    const Derived& derived_;
    const Kernel& kernel_;
    const Liveness& live_;
    const Extents& extents_;
    TileSizes sizes_;
    std::int64_t walk_limit_;
    std::vector<AxisId> grouped_;
    std::vector<ChunkRuns> runs_;  ///< by stage
};

ExactCosts exact_costs(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes);

}  // namespace napkin
