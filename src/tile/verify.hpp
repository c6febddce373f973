#pragma once
// Says whether a tile program keeps its rules; run after every pass that makes one.
#include <string>
#include <vector>

#include "tile/sizes.hpp"

namespace napkin {

/// One line for each broken rule, naming the kernel and the variable; empty when the program is sound. A program
/// without messages runs in interpret() without an internal fault. The rules:
///  - sizes: a group or stream size lies between 1 and its axis' extent; no axis is grouped twice, grouped and
///    streamed, or
///    streamed inside its own loop, whose chunks a subloop may cut into parts;
///  - variables: one dimension for each axis of the array; loaded tiles lie inside their array; what is computed has
///    just its
///    array's axes as dimensions;
///  - lifetimes: defined before use, not used after Free, freed exactly once and in the list in which it was defined;
///    states
///    are initialised before the loop that updates them;
///  - reads stay inside the tile that was loaded or computed; every axis of a body is a target axis or reduced;
///  - reductions: none over a grouped axis; a carry only beside a reduction; a state reduced over its loop's axis is
///    carried;
///  - memory: what is loaded is an input or was stored by an earlier kernel; what is stored was computed; every output
///    is stored
///    exactly once at each point, by one group.
std::vector<std::string> verify(const SizedProgram& program);

}  // namespace napkin
