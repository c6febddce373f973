#pragma once
// Says whether a diagram keeps its invariants (diagram.hpp); every pass that makes a diagram is followed by it.
#include <string>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// One line for each broken invariant; empty when the diagram is well formed.
std::vector<std::string> verify(const Diagram& diagram);

}  // namespace napkin
