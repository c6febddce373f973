#pragma once
// Costs on a hierarchy of levels: memory → level 1 → … → the core, each with its own group and stream sizes (paper.md
// §§2, 5).
//
//  - Sizes nest: an outer level's size of an axis is a multiple of the next inner level's, or the whole axis. So every
//    inner tile lies in one outer tile and is ragged only where the axis ends. The core runs the groups and chunks that
//    it runs without outer levels.
//  - The inner groups in one outer group run in lockstep, as parallel children do: one stage after the other, and in a
//    loop one outer chunk after the other. An outer chunk in which a form of Loop::support is negative everywhere is
//    skipped, as at the core.
//  - If a stream is cut into parts, a group of any level runs one part, which consists of the core's chunks. An outer
//    level's chunks are counted from where the part begins, so that inner ones nest in them. The last is ragged where
//    the part ends.
//  - A loaded variable has a tile at every level: the box that its indices span over that level's group and chunk. Each
//    level fetches its tile from the level above, once a group or once a chunk as tile/expand.hpp says. Its children
//    fetch theirs from it.
//  - What is stored goes up: a level collects its tile from its children, then writes it upwards once. Everything else
//    lives at the core alone.
//  - So H at a level is H of two levels at that level's sizes. It is at most H at the next inner level, except for two
//    things. Inner tiles leave out more of what is skipped. They also leave out what no index meets (between the places
//    of X[2*i], beside X[i, i]).
//  - M at an outer level is the largest sum of the tiles that one group holds at a time. A tile that is loaded once a
//    group is held from its first use to its last, both included. A use is a statement of a block or a whole loop.
//  - What a loop loads or stores in each chunk is held for the whole chunk, all of it at once. Any other stored tile is
//    held while it is collected, after the statement or loop that defines it. Each is held by itself, beside what a
//    later statement still needs.
#include "support/result.hpp"
#include "tile/exact.hpp"

namespace napkin {

/// The levels' sizes, outermost first and the core last, cut down to the extents and to the axes that the kernel groups
/// or streams. Errors: bad-level-size, for each size that is negative or that neither is a multiple of the next inner
/// level's nor spans the axis.
Result<std::vector<TileSizes>> nest(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                    std::vector<TileSizes> levels);

/// The counts of every level: what the tile interpreter counts by moving the values through all of them. `tiles`: the
/// kernel's, where subloops cut them at the core. Pre: the sizes nest.
std::vector<Counts> nested_costs(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                 const std::vector<TileSizes>& levels, const TileKernel* tiles = nullptr);

}  // namespace napkin
