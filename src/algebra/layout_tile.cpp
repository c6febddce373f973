#include "algebra/layout_tile.hpp"

#include <fmt/format.h>

#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin::layouts {
namespace {

/// A tuple of `rank` modes, filled up with 1:0.
Layout padded(const Layout& layout, std::size_t rank) {
    std::vector<Layout> modes(layout.modes().begin(), layout.modes().end());
    while (modes.size() < rank) modes.emplace_back(1, 0);
    return Layout(std::move(modes));
}

}  // namespace

Result<Layout> logical_divide(const Layout& layout, const Layout& tile) {
    const auto rest = complement(tile, layout.size());
    if (!rest) return rest;
    return composition(layout, Layout({tile, *rest}));
}

Result<Layout> logical_product(const Layout& layout, const Layout& copies) {
    auto free = free_modes(layout);
    if (!free) return free.errors();
    // The gaps first, then as much behind the layout as the farthest copy asks for.
    std::int64_t gaps = 1;
    for (const Leaf& l : free->leaves) gaps = saturating_mul(gaps, l.size);
    const std::int64_t behind = ceil_div(copies.cosize(), gaps);
    if (behind > 1) free->leaves.push_back({behind, free->reach});
    auto places = composition(from_leaves(free->leaves), copies);
    if (!places) return places;
    return Layout({layout, std::move(*places)});
}

Result<Layout> blocked_product(const Layout& layout, const Layout& copies) {
    const std::size_t rank = std::max(layout.rank(), copies.rank());
    const auto product = logical_product(padded(layout, rank), padded(copies, rank));
    if (!product) return product;
    std::vector<Layout> modes;
    for (std::size_t i = 0; i < rank; ++i)
        modes.push_back(Layout({product->mode(0).mode(i), product->mode(1).mode(i)}));
    return Layout(std::move(modes));
}

Result<Layout> tile_to_shape(const Layout& atom, const std::vector<std::int64_t>& extents, std::vector<std::size_t> order) {
    internal_check(atom.rank() == extents.size(), "an atom and extents of different rank");
    if (order.empty()) {
        order.resize(extents.size());
        iota(order, std::size_t{0});
    }
    std::vector<Leaf> copies(extents.size());
    std::int64_t next = 1;
    for (const std::size_t i : order) {
        const std::int64_t size = atom.modes()[i].size();
        if (extents[i] < 1 || extents[i] % size != 0)
            return layout_error("layout-tile",
                                fmt::format("extent {} of mode {} is not a multiple of the atom's {}", extents[i], i, size),
                                fmt::format("a multiple of {}", size));
        copies[i] = {extents[i] / size, next};
        next = saturating_mul(next, extents[i] / size);
    }
    const auto whole = blocked_product(atom, from_leaves(copies));
    if (!whole) return whole;
    return coalesce_modes(*whole);
}

}  // namespace napkin::layouts
