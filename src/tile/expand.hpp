#pragma once
// Expansion: a derived diagram under a plan becomes the tile program, by the rules atop derive/derived.hpp. Pure; one pass.
#include "tile/program.hpp"

namespace napkin {

/// Places the transfers: loads before the first statement that reads them (in the loop when the index pattern contains its axis,
/// else once a group), states initialised before their loop, outputs stored, and every variable freed after its last use.
/// A group or stream size past the extent counts as the extent; an axis without one is not cut.
/// Pre: `extents` binds derived.diagram and `plan` has one entry for each kernel. Throws InternalError otherwise.
TileProgram expand(const Derived& derived, const Extents& extents, const Plan& plan);

}  // namespace napkin
