#pragma once
// What a group has to hold when statements that follow each other over the same points are carried out point by point, each of them at one
// point before any at the next. That is the memory of H*: tails are free (Theorem 1), and a value that is made and used at a point alone is no
// tile.
#include "tile/liveness.hpp"

namespace napkin {

/// One moment for every run of such statements and for every other statement: what is alive in it, without
///  - what is computed in the run and read there alone, at its own point: a single value;
///  - the smaller of two tiles of which one is defined in the run and the other, read in the run at the point that is written, dies in it:
///    the one takes the place of the other.
std::vector<Moment> held_point_by_point(const Diagram& diagram, const TileKernel& kernel, const Liveness& live);

}  // namespace napkin
