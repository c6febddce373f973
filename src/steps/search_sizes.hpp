#pragma once
// The fastest of the sizes that are open.
#include <memory>

#include "steps/made_steps.hpp"

namespace napkin {

/// Takes the open sizes with the shortest time that spill nothing and break no divisors, as the charts have it. Sizes
/// whose busiest unit alone takes longer than the best so far need no chart. `best`: what is to be beaten, of the
/// choices that are given.
std::unique_ptr<MadeSteps> fastest(const StepMaker& maker, StepSubject& subject, const StepChoices& given,
                                   std::unique_ptr<MadeSteps> best);

}  // namespace napkin
