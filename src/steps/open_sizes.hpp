#pragma once
// Sizes that no schedule fixes: smaller until they fit, and such as keep their divisors.
#include <optional>

#include "steps/steps.hpp"

namespace napkin {

/// Sizes that are not fixed by hand, one step smaller: a warpgroup less, else half a chunk, else half a warpgroup's
/// rows; false: there are none. Those of the model's choice leave no room for what passes between levels.
bool shrink(StepContext& context, const StepChoices& choices);

/// Which multiples of its divisor a size becomes: chunks the next larger one and groups the next smaller one, or the
/// least.
enum class Legal : std::uint8_t { nearest, least };
/// The sizes with those that are open and break a divisor, or leave a warpgroup with fewer rows, made legal; none where
/// all are.
std::optional<TileSizes> keeping_divisors(const StepContext& context, const StepChoices& choices,
                                          const SizeDivisors& divisors, Legal legal);

}  // namespace napkin
