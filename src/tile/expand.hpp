#pragma once
// Expansion: a derived diagram becomes the tile program, by the rules atop derive/derived.hpp. Pure; one pass.
#include "tile/program.hpp"

namespace napkin {

/// Places the transfers: loads before the first statement that reads them (in the loop when the index pattern contains its axis,
/// else once a group), states initialised before their loop, outputs stored, and every variable freed after its last use.
TileProgram expand(const Derived& derived);

}  // namespace napkin
