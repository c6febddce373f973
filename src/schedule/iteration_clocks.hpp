#pragma once
// What a full tile's mainloop iteration takes, statement by statement, as the simulator has it. The simulator's own
// pace of a warpgroup and the search over orders both use these clocks.
#include <vector>

namespace napkin {

/// Clocks of one warpgroup that has its SM's units to itself.
struct StatementClocks {
    double unit = 0;            ///< of the tensor core
    double special = 0;         ///< of the special function units (SFU)
    double own = 0;             ///< for which the warpgroup computes, on all units but the tensor core
    double latency = 0;         ///< for which it waits for its own results, too
    double latency_beside = 0;  ///< the part of that which is left while products are computed
};

struct IterationClocks {
    std::vector<StatementClocks> of_step;  ///< by step; nothing for those outside of the loop
    double warpgroups = 1;                 ///< that share the SM
    /// The least clocks of a warpgroup's iteration where statements run ahead. No overlap was measured to leave less.
    double least_ahead = 0;
};

}  // namespace napkin
