#pragma once
// Copies of factors of products that stand before the first kernel that reads them. An instruction copies 16 bytes or
// more of a row at a time, or multiplies other types or rows than those at hand. For A[m, k] in bf16 with k = 4103,
//   A_rows[m, k_rows] = where(k_rows < k, A[m, k_rows], 0)        k_rows = 4104
// has rows of whole units, which end in zeros. A copy may also have the dimensions in another order, and a type that
// holds all values of the array's.
#include <cstdint>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

struct FactorCopy {
    ArrayId array;
    DType type = DType::f32;     ///< of the copy: it has all values of the array's
    std::vector<int> order;      ///< the array's dimensions, as the copy has them
    std::int64_t row_bytes = 1;  ///< rows have a multiple of so many; 1: any number
    friend bool operator==(const FactorCopy&, const FactorCopy&) = default;
};

struct WithCopies {
    Derived form;  ///< arrays and axes that the form had before keep their numbers
    Extents extents;
    /// of each kernel the one of the form before that it is, or for whose sake it copies
    std::vector<std::size_t> whole;
};
/// Every kernel reads the copies. Pre: each array has an axis, and is copied once.
WithCopies with_copies(const Derived& derived, const Extents& extents, const std::vector<FactorCopy>& copies);

}  // namespace napkin
