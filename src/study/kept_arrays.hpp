#pragma once
// What a forward diagram keeps for its gradient, and what it computes again: a choice by predicted time.
#include <cstdint>
#include <vector>

#include "differentiate/gradient.hpp"
#include "run/pipeline.hpp"

namespace napkin {

struct KeptArrays {
    std::vector<ArrayId> arrays;                       ///< of the forward diagram
    std::int64_t bytes = 0;                            ///< of those that are no results, which are there anyway
    double forward_seconds = 0, gradient_seconds = 0;  ///< predicted
    [[nodiscard]] double seconds() const { return forward_seconds + gradient_seconds; }
};

/// All arrays of at most so many bytes are kept, for each number of bytes that makes a difference. Together they take
/// no more than `memory_limit` (0: whatever they take). Never empty: the first choice keeps nothing. Errors: those of
/// sizes and of the passes up to Pass::plan, which both diagrams go through as `options` say.
Result<std::vector<KeptArrays>> choices_of_kept_arrays(const Diagram& forward, GradientOptions gradients,
                                                       PipelineOptions options, std::int64_t memory_limit);

}  // namespace napkin
