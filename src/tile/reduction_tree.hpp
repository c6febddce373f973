#pragma once
// How the terms of a reduction are combined, which determines how rounding errors grow.
#include <cstdint>
#include <vector>

#include "tile/sizes.hpp"

namespace napkin {

/// Each of lanes·blocks accumulators adds `chain` terms in sequence. Each K block combines its accumulators. The K
/// blocks are added in sequence (0: no loop cuts the reduction), and the splits of the stream at the end.
struct ReductionTree {
    std::int64_t chain = 1, lanes = 1, blocks = 1, chunks = 0, splits = 1;
    /// relative error that a tensor core's rounding of factors and of accumulators adds to every term
    double factor_unit = 0;
    bool is_corrected = true;  ///< the earlier sum is corrected before a K block's own sum is added
    friend bool operator==(const ReductionTree&, const ReductionTree&) = default;

    /// Most roundings between a term and the result. Adding a K block or a split takes one, and with a correction
    /// eight. These are for its exponential with its argument, the products with it, the merge of a shifted moment, and
    /// the addition.
    [[nodiscard]] std::int64_t depth() const;
};

/// The trees of every Compute of the kernel, in order. One accumulator adds the terms of a K block in sequence, as the
/// interpreter does. The tree of a map is a single term.
std::vector<ReductionTree> reduction_trees(const TileKernel& kernel, const TileSizes& sizes, const Extents& extents);

}  // namespace napkin
