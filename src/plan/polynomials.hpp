#pragma once
// Who computes the exponentials of a kernel on a matrix unit: the unit for them, or threads, a part of them by polynomials (schedule/exponentials.hpp).
#include <cstdint>
#include <vector>

#include "schedule/simulate.hpp"

namespace napkin {

/// A statement some of whose exponentials may be polynomials: its step, and of how many at a time the finest part is one.
struct PossiblePolynomials {
    StepId step = {};
    int of = 1;
};
/// Statements whose atoms are not by hand, where `by_hand` does not ask for these too.
std::vector<PossiblePolynomials> possible_polynomials(const ScheduledKernel& kernel, bool by_hand = false);
/// The kernel with so many polynomials in the statement.
ScheduledKernel with_polynomials(const ScheduledKernel& kernel, StepId step, int some, int of);

/// The kernel's time, `time` being that of none by polynomials. Of every statement so many are as make the simulated kernel the fastest, with the reason beside
/// its atom; none where the fewest make it no faster. Pre: the kernel is completed.
Simulation choose_polynomials(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, Simulation time);

}  // namespace napkin
