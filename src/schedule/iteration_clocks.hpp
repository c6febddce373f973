#pragma once
// What a full tile's turn of a loop takes, statement by statement, as the simulator has it: the one source of clocks
// for the simulator's own pace of a warpgroup and for the search over orders.
#include <vector>

namespace napkin {

/// Clocks of one warpgroup that has its core's units for itself.
struct StatementClocks {
    double unit = 0;            ///< of the matrix unit
    double special = 0;         ///< of the units for exponentials and the like
    double own = 0;             ///< for which the warpgroup computes, on all units but the matrix unit
    double latency = 0;         ///< for which it waits for its own results besides
    double latency_beside = 0;  ///< the part of that which is left where products are computed meanwhile
};

struct IterationClocks {
    std::vector<StatementClocks> of_step;  ///< by step; nothing for those outside of the loop
    double warpgroups = 1;                 ///< that share the core
    /// The least part of a warpgroup's turn where statements run ahead: no overlap was measured to leave less of it.
    double least_ahead = 0;
};

}  // namespace napkin
