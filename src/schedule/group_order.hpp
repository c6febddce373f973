#pragma once
// The order in which a GPU's CTAs take the CTA tiles of a kernel.
//
// Masks may let some CTA tiles skip K blocks that others run. Then the CTA tiles that run the most come first. The
// hardware hands out a CTA tile as a CTA ends, so what is left for the end is short. The axes that decide the length
// are outside the others. So the longest CTA tiles along these are all among the first. Later rounds read operand tiles
// again that the first ones read. So the other axes are cut into bands, and CTA tiles run in sections, one band after
// the other. Then what a section reads again stays in L2.
//
// CTAs that run at the same time load many operand tiles in common, which come from global memory once. The fewer
// different ones there are, the less comes from global memory. So the outer one of the two innermost axes is cut into
// bands, and the inner one goes through a band before the next begins. The width of a band is the one at which the CTA
// tiles of all CTAs load the fewest bytes. Threads of a CPU take tiles as they come (run/workers.hpp) in the order of
// the tile program. There the axes along which data alone decide what is read are innermost, so that caches hold the
// part of a table in which neighbours read.
//
// The CTA tiles of a cluster come one after the other. They are the innermost digit, and all of the above orders
// clusters.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

std::int64_t num_groups(const std::vector<GroupAxis>& order);

/// The part of the variable's tiles that are different ones, among those that so many CTA tiles in a row load.
double different_tiles(const std::vector<GroupAxis>& order, const Variable& variable, double groups);

/// After how many CTA tiles a tile of the variable is read again; all CTA tiles where none is. Where data alone decide
/// what neighbours along the innermost axes read: after how many the part of the array ends in which they lie.
double groups_between_uses(const std::vector<GroupAxis>& order, const Variable& variable);

/// Bytes of all tiles of the variable that a CTA tile loads where no mask skips any, each once.
double bytes_of_group(const ScheduledKernel& kernel, const Variable& variable);

/// CTA tiles in a row for which each tile of the variable comes from global memory once. These are at least those that
/// run at the same time, as CTAs start together and go through their streams at one pace. They are more where L2 holds
/// what they read again.
double groups_together(const ScheduledKernel& kernel, const Variable& variable, double workers);

/// CTAs may stand at different places of their streams. This is the part that L2 then does not hold, among the tiles
/// that several of so many CTA tiles in a row read. Each CTA reads that part from global memory.
double missed_out_of_step(const ScheduledKernel& kernel, double groups);

/// ScheduledKernel::group_order of the kernel. Pre: its steps, loops and scopes are there.
std::vector<GroupAxis> group_order(const ScheduledKernel& kernel);

/// Why bands cannot have the width that the schedule asks for, and the nearest width that they can have; 0: none.
struct BandFault {
    std::string why;
    std::int64_t nearest = 1;
};
std::optional<BandFault> why_no_band(const ScheduledKernel& kernel);

/// So many CTA tiles that each take this long.
struct GroupTime {
    double time = 0, count = 0;
};
/// CTA tiles in the order in which they are taken: in each section the longest first.
struct GroupTimes {
    std::vector<GroupTime> of_section;
    std::int64_t sections = 1;
    [[nodiscard]] double count() const;
    [[nodiscard]] double total() const;  ///< the sum of all times
};
/// How long so many workers take for the CTA tiles. In `time_in_rounds` they take those of each section in turn: one
/// round goes from the first worker to the last, the next one back. A section begins with the worker after the one that
/// would end the section before. In `time_as_workers_end` each worker takes the next tile as it ends its last. Exact
/// for 2^15 CTA tiles and fewer.
double time_in_rounds(const GroupTimes& groups, double workers);
double time_as_workers_end(const GroupTimes& groups, double workers);

}  // namespace napkin
