#pragma once
// What a machine's rates rest on: on measurements, or on what its maker says.
#include <string>

#include "machine/machine.hpp"

namespace napkin {

/// How many rates are measured, among those of which the file says more than their nominal value. Such a value is what
/// programs sustain on this machine or on one of the same kind. If another machine stands for it, it is an estimate.
struct RateSources {
    int measured = 0, known = 0;
    /// "measured", "2 of 5 measured", "nominal".
    [[nodiscard]] std::string text() const;
};
RateSources rate_sources(const Machine& machine);

}  // namespace napkin
