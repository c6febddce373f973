#pragma once
// Translation validation: each step of a derivation, and the derived form itself, evaluated against the definition on random small
// sizes and random partitions.
#include <cstdint>
#include <string>
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

/// The largest relative distance |a - b| / max(1, |b|) between outputs, over all trials.
struct StepValidation {
    std::string what;  ///< the step's rule, or "derived form", "split and merge"
    double error = 0;
    int trials = 0;
    [[nodiscard]] bool good() const { return error <= 1e-9; }
};

/// One entry for each step (before against after), then the derived form under random group and stream sizes, then the same with
/// every loop split in two and merged, both against the definition. Axes with given expressions for sizes keep them.
std::vector<StepValidation> validate(const Derived& derived, int trials, std::uint64_t seed);

}  // namespace napkin
