#pragma once
// What the symbols of a diagram's sizes are called: an axis by its name, its group size g_q, its stream size s_x, its
// size in a loop inside of a stream t_d, and M. One of these that some axis has as its own name takes primes until none
// has: beside an axis M, memory is M'.
#include "diagram/diagram.hpp"

namespace napkin {

/// Valid as long as the diagram.
SymbolNames symbol_names(const Diagram& diagram);

/// The extents as the values of the axes' symbols. Valid as long as they are.
SymbolValues axis_values(const std::vector<std::int64_t>& extents);

}  // namespace napkin
