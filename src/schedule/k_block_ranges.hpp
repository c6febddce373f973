#pragma once
// Loops over a stream in which integers among the data say which K blocks contribute: document masks, lengths, blocks
// that are left out. A pass before the kernel finds the extrema of these integers over each K block, for each tile of
// its rows. They give the first and the last K block that may contribute, and the K blocks between them in which
// nothing is masked.
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

struct KBlockRanges {
    /// each is ≥ 0 wherever a point contributes; where all of them are, data mask nothing
    std::vector<MaskForm> forms;
    /// values of the M axis that have a range of their own: those of a warpgroup, or of the CTA
    std::int64_t rows = 0;
    std::int64_t tiles = 0;  ///< of so many rows, with those of CTA tiles that lie past the end
    /// the other axes of CTA tiles on which the integers depend; each tile along them has ranges of its own
    std::vector<AxisId> others;
    std::int64_t count = 1;  ///< ranges in all: tiles, times those of the other axes
    [[nodiscard]] bool tell_rows_apart(AxisId rows_axis) const;
};
/// Bytes of a range: both ends of the K blocks that may contribute, and of those in which nothing is masked. Each is an
/// integer of at most 8 bytes.
inline constexpr std::int64_t k_block_range_bytes = 32;

/// None where no form of the loop's masks reads integers in memory, by coordinates along the stream, the M axis and the
/// other axes of CTA tiles. None where the kernel is not on the tensor cores, whose CTAs alone take ranges, or has its
/// arena in global memory. None where the loop is not repeated, or not the kernel's one loop.
std::optional<KBlockRanges> k_block_ranges(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Forms of the loop's masks whose integers do not lie along the stream. Their extrema over a tile, found as its loop
/// begins, say which K blocks contribute. The integers lie in memory. None where a pass before the kernel finds ranges.
std::vector<MaskForm> bounds_of_tile(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// How many K blocks run is known once data are.
bool is_bounded_by_data(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Bytes of scratch memory that all ranges of the kernel take.
std::int64_t k_block_ranges_bytes(const ScheduledKernel& kernel);

}  // namespace napkin
