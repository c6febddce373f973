#pragma once
// Copies of arrays whose rows do not begin at multiples of so many bytes in memory. Instructions that copy 16 bytes or
// more at a time cannot read such rows; a copy with longer rows, which end in zeros, they can. For A[m, k] in bf16 with
// k = 4103 there stands before the first kernel that reads it
//   A_rows[m, k_rows] = where(k_rows < k, A[m, k_rows], 0)        k_rows = 4104
// and A_rows[m, k] in the place of A[m, k] in every kernel.
#include <cstdint>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// Arrays that some statement multiplies with another and sums, and whose rows are not multiples of so many bytes long.
std::vector<ArrayId> factors_in_odd_rows(const Derived& derived, const Extents& extents, std::int64_t row_bytes);

struct WithAlignedRows {
    Derived form;  ///< arrays and axes that the form had before keep their numbers
    Extents extents;
    /// of each kernel the one of the form before that it is, or for whose sake it copies
    std::vector<std::size_t> whole;
};
/// Pre: every array has an axis, and row_bytes is a multiple of its type's bytes.
WithAlignedRows with_aligned_rows(const Derived& derived, const Extents& extents, const std::vector<ArrayId>& arrays,
                                  std::int64_t row_bytes);

}  // namespace napkin
