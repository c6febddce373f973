#pragma once
// A derivation is validated before it runs for the first time. A derivation that is new to this computer is tried on
// small sizes. One that was found good is recorded beside the compiled kernels, by its text and napkin's version.
#include "check/validate.hpp"

namespace napkin {

struct FirstUse {
    bool known = false;  ///< found good by an earlier call, and not tried again
    int trials = 0;
    int cut_trials = 0;  ///< StepValidation::cut_trials
    double seconds = 0;
};

/// Tries the definition against every step of the derivation, its form and its merged halves, for some milliseconds.
/// Where there is no cache every use is the first. Throws InternalError with the counterexample when they differ: a
/// rewrite of napkin's is wrong.
FirstUse validate_first_use(const Derived& derived);

}  // namespace napkin
