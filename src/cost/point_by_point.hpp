#pragma once
// What a group has to hold when consecutive statements are carried out together, each of them at one point before any
// at the next. That is the memory of H*: tails are free (Theorem 1), and a value that is made and used at one point
// needs no tile.
#include "cost/transfers.hpp"
#include "tile/liveness.hpp"

namespace napkin {

/// Returns one moment for every run of such statements and for every other statement. With `point_by_point`, the
/// statements of a run are over the same points. With `row_by_row`, they have some axes in common, whose points are
/// rows. All statements then run for one row before any does for the next. Rows make runs longer, and what the
/// statements of a run load for all rows is held at once. With `rows_of_a_load`, a run ends where what it loaded is
/// freed. A moment holds what is alive in the run, except
///  - what is computed in the run and at most stored or read there in its own row: it counts one row, or nothing where
///    that is a single value;
///  - what is loaded outside of loops for the run alone, each value for one row: it counts the same, as it is loaded
///    when the run needs it;
///  - the smaller of two tiles of which one takes the place of the other: one is defined in the run, and the other dies
///    in it, read at the point that is written.
/// Pre: `held` is not HeldTiles::whole.
std::vector<Moment> held_point_by_point(const Diagram& diagram, const TileKernel& kernel, const Liveness& live,
                                        HeldTiles held);

}  // namespace napkin
