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

/// `accumulators(rows,columns)` and `operand(rows,k,bytes)`: (thread, value) → row + rows · column, of a warpgroup's
/// accumulators and of its A operand in registers. `shared(mn,k,bytes,box)`: (mn, k) → element in shared memory, k
/// contiguous, in boxes of so many bytes. Or shape:stride. Errors: layout-syntax (no such tile, not its extents), those
/// of the tiles and of parse_swizzled.
Result<HeldLayout> parse_held(std::string_view text);

/// How rows are dealt out, where every thread has equally many.
struct SharedRows {
    std::int64_t threads_a_row = 0, rows_a_thread = 0;
    /// What a reduction of a row exchanges: after a step with each of these, lane with lane xor so many, all threads of
    /// the row have the whole.
    std::vector<std::int64_t> exchanges;
};
SharedRows shared_rows(const Fragment& fragment);

}  // namespace napkin::layouts
