#pragma once
// The reduction trees that a schedule's atoms make of those of its tile program.
#include "schedule/scheduled.hpp"
#include "tile/reduction_tree.hpp"

namespace napkin {

/// The trees of all atoms. A reduction across vectors has partial results in each lane, and warps that share it have
/// blocks of their own. The parts of a sum that is cut meet in its target, like blocks.
std::vector<ReductionTree> reduction_trees(const ScheduledKernel& kernel);

}  // namespace napkin
