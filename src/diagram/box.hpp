#pragma once
// What a tile of an array is. Over a tile of the axes every dimension of a read runs over an interval, and the tile is
// the box of these intervals. If data decide on a dimension, its interval is not known. The box then runs over what the
// index is made of instead, and holds one row for each index value. X[idx[i], c] is the box [i, c], and K[table[b, x //
// 16], x % 16, d] is the box [b, x // 16, x % 16, d]. Duplicates are rows of their own, and tiles share nothing. Other
// indices are made of their axes, or of quotients and rests of these: K[table[b, x // 16] * 16 + x % 16, d] is the same
// box.
//
// An axis that walks over several dimensions (Axis::walks) has no interval in each of them either. The box of X[t // n,
// t % n + r, c] is [t, r, c].
#include <functional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

struct Box {
    std::vector<Index> dims;     ///< none of them gathered
    std::vector<AxisId> limits;  ///< by dimension: a coordinate past this axis' extent is padding, and not moved
    /// The index of each of the array's dimensions, where data decide or an axis walks. Axis p then stands for the
    /// box's coordinate p, and the elements in an index are read at the coordinates of their own boxes. Else it is
    /// empty, and the coordinates are the array's own.
    std::vector<Index> source;
};

/// `axes_of` gives the axes of the arrays that are read: in a tile program reads are of variables. `walks`: an axis of
/// the read does.
Box box_of(const Read& r, const std::function<const std::vector<AxisId>&(ArrayId)>& axes_of, bool walks);
Box box_of(const Diagram& diagram, const Read& r);

/// Whether these indices of a box's source are those of axes that walk: no data decide on them.
bool are_walks(const std::vector<Index>& source);

/// The values of a box over a tile that lie inside of the array; every dimension's interval is cut to its limit.
std::int64_t values_inside(const std::vector<Index>& dims, const std::vector<AxisId>& limits, const Extents& extents,
                           const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count);

/// What remains of an interval between 0 and the extent; empty intervals have a size of 0 or below.
Interval inside(const Interval& range, std::int64_t extent);

}  // namespace napkin
