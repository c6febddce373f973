#pragma once
// The reduction trees that a schedule's atoms make of those of its tile program.
#include "schedule/scheduled.hpp"
#include "tile/reduction_tree.hpp"

namespace napkin {

/// The trees of every atom. Vectors that are reduced across hold partial results lane by lane, and warps that share
/// them have blocks of their own; the parts of a sum that is cut meet in its target, like blocks.
std::vector<ReductionTree> reduction_trees(const ScheduledKernel& kernel);

}  // namespace napkin
