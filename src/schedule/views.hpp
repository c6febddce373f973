#pragma once
// Tiles that are read where they lie in memory, with the memory's strides. Their padding elements are other elements of
// the array; the tiles of which they would lie past its end are copied to a buffer with the same strides. Tiles that
// are written where they go: of these the padding is not written. Of tiles of which data decide where they lie, zeros
// stand in for those that lie nowhere.
#include "schedule/scheduled.hpp"

namespace napkin {

/// Whether the first value that is copied does not stand first in the buffer's row when a tile is ragged.
bool starts_late(const Index& dim);

/// Strides, and of what is loaded reach and whether some tile must be copied. Pre: Layout::sizes are there; affine
/// indices, but of what is only looked up.
void shape_view(ScheduledKernel& kernel, VariableId id);

}  // namespace napkin
