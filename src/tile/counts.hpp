#pragma once
// What is counted of a kernel: by the interpreter as it runs, by the model from the extents of tiles.
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

/// What crosses the upper border of one level, over all its groups, and what one of them holds. The model's saturate at
/// 2^62.
struct Counts {
    std::int64_t groups = 0;
    std::vector<ArrayCount> arrays;                   ///< ascending by ArrayId; those of which a value moves
    std::int64_t loaded = 0, stored = 0;              ///< values
    std::int64_t loaded_bytes = 0, stored_bytes = 0;  ///< in the types that the arrays have in memory
    std::int64_t chunks_run = 0, chunks_skipped = 0;  ///< of the streams, over all groups
    std::int64_t peak_memory = 0;                     ///< M, values
    [[nodiscard]] std::int64_t transfers() const { return saturating_add(loaded, stored); }  ///< H
    friend bool operator==(const Counts&, const Counts&) = default;
};

}  // namespace napkin
