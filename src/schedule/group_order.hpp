#pragma once
// The order in which a GPU's blocks take the groups of a kernel.
//
// Where masks let some groups skip chunks that others run, the groups that run the most come first: the hardware hands
// out a group as a block ends, and what is left for the end is short. The axes that decide it are then outside of the
// others, so that the longest groups along these are all among the first. Those of later rounds read tiles again that
// the first ones read, so the other axes are cut in bands, and the groups run in sections, one band after the other:
// what is read again in a section stays in the cache of all cores.
//
// Blocks that run at the same time load many tiles in common, which come from memory once: the fewer different ones
// there are, the less comes from memory. So of the two innermost axes the outer one is cut in bands, through which the
// inner one goes before the next band begins, of the width at which the groups of all blocks load the fewest bytes.
// Threads of a CPU take groups as they come (run/workers.hpp) in the order of the tile program.
//
// The groups of a cluster of blocks come one after the other: they are the innermost digit, and all of the above orders
// clusters.
#include <cstdint>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

std::int64_t num_groups(const std::vector<GroupAxis>& order);

/// The part of the tiles of the variable that are different ones, among those that so many groups in a row load.
double different_tiles(const std::vector<GroupAxis>& order, const Variable& variable, double groups);

/// After how many groups one reads a tile of the variable again that a group read; all groups where none does.
double groups_between_uses(const std::vector<GroupAxis>& order, const Variable& variable);

/// Bytes of all tiles of the variable that a group loads where no mask skips any, each once.
double bytes_of_group(const ScheduledKernel& kernel, const Variable& variable);

/// Groups in a row for which each tile of the variable comes from memory once: those that run at the same time, as
/// blocks of a GPU start together and go through their streams at one pace, or more where the cache of all cores holds
/// what they read again.
double groups_together(const ScheduledKernel& kernel, const Variable& variable, double workers);

/// The part that the cache of all cores does not hold, among tiles that several of so many groups in a row read, while
/// blocks stand at different places of their streams: each reads that part from memory.
double missed_out_of_step(const ScheduledKernel& kernel, double groups);

/// ScheduledKernel::group_order of the kernel. Pre: its steps, loops and scopes are there.
std::vector<GroupAxis> group_order(const ScheduledKernel& kernel);

/// So many groups that each take as long.
struct GroupTime {
    double time = 0, count = 0;
};
/// The groups in the order in which they are taken: of each section the longest first.
struct GroupTimes {
    std::vector<GroupTime> of_section;
    std::int64_t sections = 1;
    [[nodiscard]] double count() const;
    [[nodiscard]] double total() const;  ///< their times added up
};
/// How long `workers` take for groups: where they take those of each section in turn, one round from the first worker
/// to the last and the next one back, beginning with the worker after the one that would end the section before, and
/// where each takes the next one as it ends its last. Exact for 2^15 groups and fewer.
double time_in_rounds(const GroupTimes& groups, double workers);
double time_as_workers_end(const GroupTimes& groups, double workers);

}  // namespace napkin
