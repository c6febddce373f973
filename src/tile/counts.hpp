#pragma once
// Counts of a kernel. The interpreter counts as it runs; the model computes them from the extents of tiles.
#include <cstdint>
#include <vector>

#include "diagram/diagram.hpp"
#include "support/saturate.hpp"

namespace napkin {

struct ArrayCount {
    ArrayId array = -1;
    std::int64_t loaded = 0, stored = 0;  ///< values
    friend bool operator==(const ArrayCount&, const ArrayCount&) = default;
};

/// Traffic between one level and the level above it, over all groups, and the most values that one group holds. The
/// model's counts saturate at 2^62.
struct Counts {
    std::int64_t groups = 0;
    std::vector<ArrayCount> arrays;                   ///< ascending by ArrayId; only arrays that move values
    std::int64_t loaded = 0, stored = 0;              ///< values
    std::int64_t loaded_bytes = 0, stored_bytes = 0;  ///< in the types that the arrays have in memory
    std::int64_t chunks_run = 0, chunks_skipped = 0;  ///< K blocks of streams, over all groups
    std::int64_t peak_memory = 0;                     ///< M, values
    [[nodiscard]] std::int64_t transfers() const { return saturating_add(loaded, stored); }  ///< H
    friend bool operator==(const Counts&, const Counts&) = default;
};

}  // namespace napkin
