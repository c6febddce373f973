#pragma once
// What lies in memory during a launch.
#include <map>
#include <string>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"

namespace napkin {

/// Bytes of the arrays that lie in memory: inputs, outputs, and what one kernel leaves for another. All of them at
/// once.
struct Footprint {
    std::map<std::string, double> arrays;
    double inputs = 0, outputs = 0, between = 0;
    [[nodiscard]] double bytes() const { return inputs + outputs + between; }
};
Footprint footprint(const Derived& derived, const Extents& extents);

}  // namespace napkin
