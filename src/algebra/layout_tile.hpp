#pragma once
// Dividing a layout into tiles, and multiplying one by a layout of its copies (CuTe's layout algebra).
#include "algebra/layout.hpp"

namespace napkin::layouts {

/// (tile, rest): the elements that `tile` selects, in its order, and where tiles begin; composition(layout, (tile,
/// complement of tile)). Errors: those of both.
Result<Layout> logical_divide(const Layout& layout, const Layout& tile);

/// (layout, copies): copies of the layout at places that do not overlap, in the order of `copies`. Errors: the layout
/// overlaps itself; `copies` cannot be laid out in its gaps and behind it.
Result<Layout> logical_product(const Layout& layout, const Layout& copies);
/// Mode by mode, copies beside each other: mode i is (layout's mode i, copies' mode i). Missing modes are 1:0.
Result<Layout> blocked_product(const Layout& layout, const Layout& copies);

/// An array of the given extents made of copies of the atom, the first of `order` stacked closest, modes coalesced.
/// `order` names each mode once; empty is 0, 1, …. Error: an extent is not a multiple of the atom's.
Result<Layout> tile_to_shape(const Layout& atom, const std::vector<std::int64_t>& extents,
                             std::vector<std::size_t> order = {});

}  // namespace napkin::layouts
