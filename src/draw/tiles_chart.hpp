#pragma once
// The tiles of a kernel's arrays in memory (paper Figs 19 and 20). Every array is a rectangle of its last two axes, cut
// into the groups' tiles. One group's loads and stores are marked, and so is the current chunk of its stream. If the
// kernel is one contraction, its result stands between its operands, with the rows of the one and the columns of the
// other.
#include <map>
#include <string>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "draw/shapes.hpp"
#include "tile/sizes.hpp"

namespace napkin::draw {

/// What is cut, and for whom. A tile is cut as an array is: one level down, its sides are the extents.
struct TilesOf {
    std::string title = "Tiles";
    std::map<AxisId, std::string> sides = {};  ///< names of axes that are cut already: g_a
    std::string group = "g", stream = "s";     ///< letters of the parts
    std::string owner = "a group", takes = "loads", leaves = "stores";
};

svg::Document tiles_chart(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes,
                          const std::string& subject, const TilesOf& of = {});

}  // namespace napkin::draw
