#pragma once
// Tiles that are read in place in memory, with its strides, or written in place. The padding of a tile that is read is
// other elements of the array. Tiles whose padding would lie past the array's end are copied to a buffer with the same
// strides. The padding of a tile that is written in place is not written. Where data decide the place of tiles, zeros
// stand in for tiles that lie nowhere.
#include "schedule/scheduled.hpp"

namespace napkin {

/// Whether the first value that is copied does not stand first in the buffer's row when a tile is ragged.
bool starts_late(const Index& dim);

/// Strides, and for what is loaded its reach and whether some tile must be copied. Pre: Layout::sizes are there;
/// indices are affine, except for what only serves as an index (is_only_gathered).
void shape_view(ScheduledKernel& kernel, VariableId id);

}  // namespace napkin
