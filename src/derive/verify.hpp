#pragma once
// Says whether a derived form keeps the rules by which its tile program is made (tile/expand.hpp).
#include <string>
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

/// One line for each broken rule; empty when the derived form is well formed.
std::vector<std::string> verify(const Derived& derived);

}  // namespace napkin
