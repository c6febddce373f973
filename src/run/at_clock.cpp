#include "run/at_clock.hpp"

#include "plan/simulate_again.hpp"
#include "support/ranges.hpp"

namespace napkin {

double seconds_at_clock(const Derived& derived, const Extents& extents, const Machine& machine, const Plan& plan,
                        double clock_hz) {
    return sum<double>(simulate_again(derived, extents, machine, plan, {.clock_hz = clock_hz}),
                       [](const Simulation& time) { return time.seconds; });
}

}  // namespace napkin
