#pragma once
// Loops over a stream of which whole numbers among the data say which chunks contribute: document masks, lengths,
// blocks that are left out. A pass before the kernel finds, for each tile of its rows, the extrema of these numbers
// over each chunk, and from them the first and the last chunk that may contribute and the chunks between them of which
// nothing is masked.
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

struct KBlockRanges {
    /// each ≥ 0 wherever a point contributes; all of them where nothing is masked by data
    std::vector<MaskForm> forms;
    /// values of the tensor axis that have a range of their own: those of a warpgroup, or of the block
    std::int64_t rows = 0;
    std::int64_t tiles = 0;  ///< of so many rows, those of groups' tiles that lie past the end included
    /// the other grouped axes on which the numbers depend, each of whose tiles has ranges of its own
    std::vector<AxisId> others;
    std::int64_t count = 1;  ///< ranges in all: tiles, times those of the other axes
    [[nodiscard]] bool tell_rows_apart(AxisId rows_axis) const;
};
/// Tiles of the axis among all groups.
std::int64_t num_tiles(const ScheduledKernel& kernel, AxisId axis);
/// Bytes of a range: the ends of both, as whole numbers of at most 8 bytes.
inline constexpr std::int64_t k_block_range_bytes = 32;

/// None where no form of the loop's masks reads whole numbers that lie in memory, by coordinates along the stream, the
/// tensor axis and grouped axes; where the kernel is not on the matrix unit, whose blocks alone take ranges, or has its
/// arena in memory; where the loop is not repeated, or not the kernel's one loop.
std::optional<KBlockRanges> k_block_ranges(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Bytes of scratch memory that all ranges of the kernel take.
std::int64_t k_block_ranges_bytes(const ScheduledKernel& kernel);

}  // namespace napkin
