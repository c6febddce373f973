#pragma once
// What a group has to hold when statements that follow each other are carried out together, each of them at one point
// before any at the next. That is the memory of H*: tails are free (Theorem 1), and a value that is made and used at a
// point alone is no tile.
#include "cost/transfers.hpp"
#include "tile/liveness.hpp"

namespace napkin {

/// One moment for every run of such statements and for every other statement. The statements of a run are over the same
/// points (`point_by_point`), or have some axes in common, whose points are then rows: all statements run for one row
/// before any does for the next (`row_by_row`). Rows make runs longer, and what the statements of a run load for all
/// rows is then held at once: `rows_of_a_load` ends a run where what it loaded is freed. Held is what is alive in the
/// run, without
///  - what is computed in the run and at most read there, in its own row, or stored: one row of it, which is nothing
///    where it is a single value;
///  - what is loaded outside of loops for the run alone, each value for one row: likewise, as it comes when the run is
///    there;
///  - the smaller of two tiles of which one is defined in the run and the other, read in the run at the point that is
///    written, dies in it:
///    the one takes the place of the other.
/// Pre: `held` is none of whole tiles.
std::vector<Moment> held_point_by_point(const Diagram& diagram, const TileKernel& kernel, const Liveness& live,
                                        HeldTiles held);

}  // namespace napkin
