#pragma once
// Storage slots for the arrays between kernels. What no later step reads makes room for what later steps write.
#include <cstdint>
#include <vector>

#include "diagram/sizes.hpp"
#include "tile/program.hpp"

namespace napkin {

/// The arrays in memory that one step reads and writes.
struct ArrayUse {
    std::vector<ArrayId> reads, writes;
    /// read arrays that the only result may overwrite: each is read at the very positions that are written
    std::vector<ArrayId> over;
};
ArrayUse use_of(const TileKernel& kernel);

struct Placement {
    std::vector<int> slot;            ///< by ArrayId; -1: not a temporary
    std::vector<std::int64_t> bytes;  ///< by slot
    [[nodiscard]] std::int64_t total_bytes() const;
};
/// Places the temporaries that the steps, which run in order, write.
Placement placed(const Diagram& diagram, const Extents& extents, const std::vector<ArrayUse>& steps);
/// Places the temporaries between a program's kernels.
Placement placed(const TileProgram& program, const Extents& extents);

}  // namespace napkin
