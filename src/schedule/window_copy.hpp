#pragma once
// Copies of windows: cp.async.bulk.tensor in im2col mode (PTX ISA; CUDA driver API, cuTensorMapEncodeIm2col). The rows
// of a tile are values of an axis that walks over dimensions of an array. The copy walks over them by itself, from the
// place of the first row on, and brings contiguous values of each. All rows are shifted by one offset along each
// dimension, which is the place in the window.
//
// For X[t // 3136, t // 56 % 56 + r, t % 56 + s, c] it begins at the image, row and column of the first t, with the
// offset (r, s). The box of first places is 56 wide and 56 high. At its end the copy goes on with the next row, and the
// next image.
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

struct WindowDimension {
    Index first = Affine{};             ///< where the tile's first row begins, without the offset
    Index offset = Affine{};            ///< of all rows; one value in the tile, from 0 on
    std::int64_t stride = 1;            ///< from one row to the next
    std::int64_t lower = 0, upper = 0;  ///< corners of the box of first places: from the dimension's first, and last
    std::int64_t steps = 1;             ///< rows before the next dimension steps
};

struct WindowCopy {
    AxisId rows, columns;
    std::vector<WindowDimension> dims;  ///< of the array, without the last; the outermost has no offset and no box
};

/// How the tile of a variable of an axis that walks is copied. None where a copy does not reach it. It has no such
/// mode. Some index is not made of one digit of the rows and of what has one value in the tile. An offset or a corner
/// has too many bits.
std::optional<WindowCopy> window_copy(const ScheduledKernel& kernel, VariableId id);

}  // namespace napkin
