#pragma once
// Names of the symbols of a diagram's sizes. An axis has its name, its group size is g_q, its stream size s_x, its size
// in a loop inside of a stream t_d, and memory is M. If some axis has one of these as its own name, the symbol takes
// primes until it is unique. Beside an axis M, memory is M'.
#include "diagram/diagram.hpp"

namespace napkin {

/// Valid as long as the diagram.
SymbolNames symbol_names(const Diagram& diagram);

/// The extents as the values of the axes' symbols. Valid as long as they are.
SymbolValues axis_values(const std::vector<std::int64_t>& extents);

}  // namespace napkin
