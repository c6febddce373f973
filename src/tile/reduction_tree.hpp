#pragma once
// How the terms of a reduction meet, which says how far rounding goes.
#include <cstdint>
#include <vector>

#include "tile/sizes.hpp"

namespace napkin {

/// `chain` terms one after the other in each of lanes·blocks accumulators, which meet in every chunk; the chunks one
/// after the other (0: no loop cuts the reduction); and the splits of the stream at the end.
struct ReductionTree {
    std::int64_t chain = 1, lanes = 1, blocks = 1, chunks = 0, splits = 1;
    /// relative error of every term that a matrix unit's rounding of factors and of accumulators adds
    double factor_unit = 0;
    bool is_corrected = true;  ///< what was summed before a chunk is corrected before the chunk's own sum is added
    friend bool operator==(const ReductionTree&, const ReductionTree&) = default;

    /// Roundings between a term and the result, at most. A chunk or a split that is added takes one; with a correction
    /// eight: its exponential with its argument, the products with it, the merge of a shifted moment, the addition.
    [[nodiscard]] std::int64_t depth() const;
};

/// The trees of every Compute of the kernel, in order: as the statements stand, one accumulator takes the terms of a
/// chunk one after the other, as the interpreter runs them. That of a map is a single term.
std::vector<ReductionTree> reduction_trees(const TileKernel& kernel, const TileSizes& sizes, const Extents& extents);

}  // namespace napkin
