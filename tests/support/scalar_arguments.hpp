#pragma once
// Programs with numbers that are known only as they run: a scale, a temperature, a cap, an epsilon.
#include <map>
#include <string>

#include "diagram/diagram.hpp"

namespace napkin {

struct WithScalarArguments {
    std::string text;
    std::map<std::string, double> values;  ///< by name: what stood there
};

/// The diagram's text with an argument without axes for every number that real values are combined with. Those that say
/// where something is read, and those of conditions and exponents, stay. Pre: all sizes are known.
WithScalarArguments with_scalar_arguments(const Diagram& diagram);

}  // namespace napkin
