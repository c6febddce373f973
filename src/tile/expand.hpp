#pragma once
// Expands a derived diagram into the tile program. Pure; one pass. A kernel is executed as follows:
//  - Every tile of the product of the grouped axes is one group, which runs all stages in order. A grouped axis runs
//    over the group's tile, a streamed axis inside its loop over the K block, every other axis over its full extent.
//    The last tile and the last K block may be ragged.
//  - Every pair of a memory array and an index pattern that is read is one variable. It is loaded in each iteration of
//    a loop whose axis the pattern has, else once per group.
//  - Every statement's target is one variable with the array's axes as dimensions. An output is stored after the
//    statement that defines it, in every iteration where it has the loop's axis. A state is stored after its loop.
#include "tile/program.hpp"

namespace napkin {

/// A load stands before the first statement, or whole loop, that reads the variable. Every variable is freed after its
/// last use. What a loop reads but does not define lives through the whole loop.
TileProgram expand(const Derived& derived);
TileKernel expand(const Derived& derived, const Kernel& kernel);

}  // namespace napkin
