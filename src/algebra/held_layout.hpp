#pragma once
// Layouts by what they are of: the tiles of wgmma by their extents, in place of shape:stride.
#include <optional>

#include "algebra/fragment.hpp"
#include "algebra/shared_operand.hpp"

namespace napkin::layouts {

/// A layout, and who holds it where threads do.
struct HeldLayout {
    Swizzled layout;
    std::optional<Fragment> fragment;
};

/// Parses shape:stride or one of three tiles of wgmma:
/// - `accumulators(rows,columns)`: a warpgroup's accumulators, (thread, value) → row + rows · column;
/// - `operand(rows,k,bytes)`: its A operand in registers, the same kind of map;
/// - `shared(mn,k,bytes,box)`: a tile in shared memory, (mn, k) → element, k contiguous, in boxes of `box` bytes.
/// Errors: layout-syntax (no such tile, wrong extents), those of the tiles and of parse_swizzled.
Result<HeldLayout> parse_held(std::string_view text);

/// How rows are distributed over threads, where every thread has equally many.
struct SharedRows {
    std::int64_t threads_a_row = 0, rows_a_thread = 0;
    /// Shuffles that reduce a row: each step exchanges values between a lane and the lane xor this number. After all
    /// steps every thread of the row has the whole result.
    std::vector<std::int64_t> exchanges;
};
SharedRows shared_rows(const Fragment& fragment);

}  // namespace napkin::layouts
