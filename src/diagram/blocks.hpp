#pragma once
// Axes that run through blocks: k = 128 * block, of which some values are one for each block.
#include <cstdint>
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// c where the axis stands in the expression as axis // c alone; none where it stands there otherwise, with several c,
/// or not at all.
std::optional<std::int64_t> block_length(const Expr& e, AxisId axis);

/// The expression with the block's axis in place of axis // c. Pre: block_length is c.
Expr at_block(const Expr& e, AxisId axis, AxisId block);

/// The two axes of which an axis is made: of blocks, and of the values in one, whose size is a number.
struct BlocksOf {
    AxisId block = -1, inside = -1;
    std::int64_t length = 0;
};
/// None where the axis' size is no product of two axes' sizes, one of them a number.
std::optional<BlocksOf> blocks_of(const Diagram& diagram, AxisId axis);

/// Axes of the values in a block whose size stands as a number in equations. With another size the text would mean
/// something else.
std::vector<AxisId> fixed_axes(const Diagram& diagram);

/// Axes of dimensions that are read at a remainder by the number of their values, as in X[w // 64, w % 64] with rows of
/// 64. With another size they would be read in part, or beyond their end.
std::vector<AxisId> axes_of_rests(const Diagram& diagram);

/// The diagram with an axis for the values in a block. It is added wherever an equation sums over an axis of c · block
/// values and tells some of them apart by axis // c alone. The size of the summed axis is then the new axis times the
/// blocks'.
Diagram with_axes_in_blocks(Diagram diagram);

}  // namespace napkin
