#pragma once
// The order in which a GPU's blocks take the groups of a kernel.
//
// Where masks let some groups skip chunks that others run, the groups that run the most come first: the hardware hands out a group as a
// block ends, and what is left for the end is short. The axes that decide it are then outermost, so that the longest groups along every
// other axis are all among the first.
//
// Blocks that run at the same time load many tiles in common, which come from memory once: the fewer different ones there are, the less
// comes from memory. So of the two innermost axes the outer one is cut in bands, through which the inner one goes before the next band
// begins, of the width at which the groups of all blocks load the fewest bytes. Threads of a CPU take groups as they come (run/workers.hpp) in the order of the tile program.
#include <cstdint>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// Of the tiles of the variable that so many groups in a row load, the part that are different ones. Blocks of a GPU start together and go
/// through their streams at one pace, so that what several of them load comes from memory once.
double different_tiles(const std::vector<GroupAxis>& order, const Variable& variable, double workers);

/// ScheduledKernel::group_order of the kernel. Pre: its steps, loops and scopes are there.
std::vector<GroupAxis> group_order(const ScheduledKernel& kernel);

/// So many groups that each take as long.
struct GroupTime {
    double time = 0, count = 0;
};
/// How long `workers` take for groups, given in the order in which they are taken, longest first: where worker i takes the i-th, the
/// (i + workers)-th and so on, and where each takes the next one as it ends its last.
double time_in_turn(const std::vector<GroupTime>& groups, double workers);
double time_as_workers_end(const std::vector<GroupTime>& groups, double workers);

}  // namespace napkin
