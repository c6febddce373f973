#pragma once
// Expansion: a derived diagram becomes the tile program. Pure; one pass. How a kernel is executed:
//  - Every tile of the product of the grouped axes is one group, and runs all stages in order. A grouped axis runs over
//    the group's tile, a
//    streamed axis inside its loop over the chunk, every other axis over its full extent. The last tile and chunk may be ragged.
//  - Every (memory array, index pattern) that is read is one variable, loaded in each iteration of a loop whose axis
//    the pattern has, else
//    once a group. Every statement's target is one variable with the array's axes as dimensions; an output is stored after the
//    statement that defines it, in every iteration where it has the loop's axis, and a state after its loop.
#include "tile/program.hpp"

namespace napkin {

/// Loads stand before the first statement, or whole loop, that reads them, and every variable is freed after its last
/// use: what a loop reads but does not define lives through all of it.
TileProgram expand(const Derived& derived);
TileKernel expand(const Derived& derived, const Kernel& kernel);

}  // namespace napkin
