#pragma once
// The tiles of a kernel's arrays in memory (paper Figs 19 and 20): every array as a rectangle of its last two axes, cut
// into the groups' tiles; of one group what it loads and stores, and of its stream the chunk at hand. Where the kernel
// is one contraction, its result stands between its operands, with the rows of the one and the columns of the other.
#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "draw/shapes.hpp"
#include "tile/sizes.hpp"

namespace napkin::draw {

svg::Document tiles_chart(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes,
                          const std::string& subject);

}  // namespace napkin::draw
