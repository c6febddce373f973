#pragma once
// A reduction along an axis that the kernel before it computes in tiles. Let Q reduce what a product makes, and let the
// product's columns n lie in many tiles. Then
//   D[m, n] = (sum(k) A[m, k] * B[n, k]) + R[m, n]        Q[m] = sum(n) D[m, n] * D[m, n]
// are two kernels, the second of which loads D again. With n in tiles of T columns, each group of the first kernel has
// a whole tile and reduces it:
//   D[m, n_tiles, n]
//   Q_part[n_tiles, m] = sum(n) D[m, n_tiles, n] * D[m, n_tiles, n]
//   Q[m] = sum(n_tiles) Q_part[n_tiles, m]
// Here n is the column within a tile. Every array with the axis has these two axes in its place, in the same order in
// memory. So no array is moved, as T divides the axis. Partial results are merged in one reduction, in whatever order
// groups run.
#include <cstdint>
#include <optional>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

struct TiledReduction {
    std::size_t producer = 0, consumer = 0;  ///< kernels of the form
    AxisId axis = -1;
    std::int64_t tile = 0;  ///< columns
    friend bool operator==(const TiledReduction&, const TiledReduction&) = default;
};

/// The pairs of kernels of which the second one could be part of the first but for its tiles; `tile` is open.
std::vector<TiledReduction> tiled_reductions(const Derived& derived);

struct WithTiledReduction {
    Derived form;  ///< as many kernels, in the same places
    Extents extents;
};
/// Nothing where `how` is none of tiled_reductions, its tile does not divide the axis, or some index says more of the
/// axis than which value of it is meant.
std::optional<WithTiledReduction> with_tiled_reduction(const Derived& derived, const Extents& extents,
                                                       const TiledReduction& how);

}  // namespace napkin
