#pragma once
// Boxes of an array's values in one memory level, and copies of them between levels.
#include <cstdint>
#include <vector>

#include "diagram/column.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// The part of every axis that a group and a K block cut out.
struct Tile {
    std::vector<std::int64_t> begin, count;

    [[nodiscard]] std::int64_t end(AxisId axis) const { return begin[at(axis)] + count[at(axis)]; }
    /// The axis becomes [from, from + size), or less where it would pass `limit`.
    void cut(AxisId axis, std::int64_t from, std::int64_t size, std::int64_t limit);
};

/// The values of a box, row-major; in absolute coordinates it begins at `origin`.
struct Buffer {
    std::vector<std::int64_t> origin, count, stride;
    Column data;
    std::int64_t collected = 0;  ///< values that store_box put into it
    bool alive = false;

    [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(data.size()); }
};

/// Makes the buffer alive as the box that `dims` span over the tile. Its values have the type and are unset.
void place(Buffer& buffer, const std::vector<Index>& dims, const Tile& tile, DType type);

/// Whether the buffer is the box that `dims` span over the tile.
bool is_placed(const Buffer& buffer, const std::vector<Index>& dims, const Tile& tile);

/// Copies the part's box out of the whole. Throws InternalError where the box leaves the whole.
void load_box(const Buffer& whole, Buffer& part);

/// Copies one cell.
void load_cell(const Buffer& whole, std::int64_t from, Buffer& part, std::int64_t to);

/// Copies what lies inside of the array; padding stays as it is.
void load_inside(const Buffer& array, Buffer& part);

/// Copies the part into its place in the whole. Throws InternalError where the part leaves the whole.
void store_box(const Buffer& part, Buffer& whole);

/// Calls f for every point of a box given by counts (all zero-based), last dimension fastest.
template <class F>
void for_each_point(const std::vector<std::int64_t>& count, F f) {
    for (const std::int64_t n : count)
        if (n <= 0) return;
    std::vector<std::int64_t> point(count.size(), 0);
    while (true) {
        f(point);
        std::size_t d = count.size();
        while (d > 0 && ++point[d - 1] == count[d - 1]) point[--d] = 0;
        if (d == 0) return;
    }
}

}  // namespace napkin
