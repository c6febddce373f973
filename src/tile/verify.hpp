#pragma once
// Checks that a tile program keeps its rules. Runs after every pass that makes one.
#include <string>
#include <vector>

#include "tile/sizes.hpp"

namespace napkin {

/// One line for each broken rule, naming the kernel and the variable; empty when the program is sound. A program
/// without messages runs in interpret() without an internal fault. The rules:
///  - Sizes: a group or stream size lies between 1 and its axis' extent. No axis is grouped twice, grouped and
///    streamed, or streamed inside its own loop. A subloop may cut the K blocks of a loop over the same axis.
///  - Variables: one dimension for each axis of the array. Loaded tiles lie inside their array. What is computed has
///    just its array's axes as dimensions.
///  - Lifetimes: defined before use, not used after Free, freed exactly once and in the list in which it was defined.
///    States are initialised before the loop that updates them.
///  - Reads stay inside the tile that was loaded or computed. Every axis of a body is a target axis or reduced.
///  - Reductions: none over a grouped axis; a carry only beside a reduction. A state reduced over its loop's axis has a
///    carry.
///  - Memory: what is loaded is an input or was stored by an earlier kernel; what is stored was computed. Every output
///    is stored exactly once at each point, by one group.
std::vector<std::string> verify(const SizedProgram& program);

}  // namespace napkin
