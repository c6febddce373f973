#pragma once
// Numbers for a tile program: the extents of the axes, and how each kernel cuts them.
#include <cstdint>
#include <utility>
#include <vector>

#include "derive/parts.hpp"
#include "diagram/sizes.hpp"
#include "tile/program.hpp"

namespace napkin {

/// The sizes of a kernel's partition; 0 where an axis is not grouped, not streamed or not cut by a subloop, and runs
/// whole.
struct TileSizes {
    ByAxis<std::int64_t> group, stream, sub = {};  ///< without `sub` no subloop cuts
    friend bool operator==(const TileSizes&, const TileSizes&) = default;
};

/// A tile program with numbers, which its index expressions hold in place of sizes.
struct SizedProgram : TileProgram {
    Extents extents;
    std::vector<TileSizes> sizes;  ///< by kernel
};

/// The kernel with numbers in place of the sizes that its index expressions hold.
TileKernel with_numbers(TileKernel kernel, const Extents& extents);

/// Sizes past an axis' extent become the extent. Pre: `extents` binds the diagram, and there are sizes for each kernel;
/// else throws InternalError.
SizedProgram sized(TileProgram program, Extents extents, std::vector<TileSizes> sizes);

/// The axes that the sizes group, outermost first, each with its group size.
std::vector<std::pair<AxisId, std::int64_t>> groups_of(const TileKernel& kernel, const TileSizes& sizes);

/// The size of the axis' K blocks in a stream's loop or a subloop, the last of which may be ragged. The whole axis
/// where it is not cut.
std::int64_t k_block_of(AxisId axis, bool is_sub, const TileSizes& sizes, const Extents& extents);
inline std::int64_t k_block_of(const TileLoop& loop, const TileSizes& sizes, const Extents& extents) {
    return k_block_of(loop.axis, loop.is_sub, sizes, extents);
}

}  // namespace napkin
