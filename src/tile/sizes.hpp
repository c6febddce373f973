#pragma once
// Numbers for a tile program: the extents of the axes, and how each kernel cuts them.
#include <cstdint>
#include <utility>
#include <vector>

#include "diagram/sizes.hpp"
#include "tile/program.hpp"

namespace napkin {

/// The sizes of a kernel's partition by AxisId; 0 where an axis is not grouped or not streamed, and runs whole.
struct TileSizes {
    std::vector<std::int64_t> group, stream;
    friend bool operator==(const TileSizes&, const TileSizes&) = default;
};

/// A tile program with numbers, which its index expressions hold in place of sizes.
struct SizedProgram : TileProgram {
    Extents extents;
    std::vector<TileSizes> sizes;  ///< by kernel
};

/// Sizes past an axis' extent become the extent. Pre: `extents` binds the diagram, and there are sizes for each kernel; else throws
/// InternalError.
SizedProgram sized(TileProgram program, Extents extents, std::vector<TileSizes> sizes);

/// The axes that the sizes group, outermost first, each with its group size.
std::vector<std::pair<AxisId, std::int64_t>> groups_of(const TileKernel& kernel, const TileSizes& sizes);

/// The size of the loop's chunks, the last of which may be ragged: the whole axis where it is not cut.
std::int64_t chunk_of(const TileLoop& loop, const TileSizes& sizes, const Extents& extents);

}  // namespace napkin
