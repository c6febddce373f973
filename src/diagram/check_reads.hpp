#pragma once
// Whether reads stay in their arrays.
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// Reads may leave their arrays where a condition keeps them from being taken. Those that data decide on are looked at
/// when data are there (check_indices.hpp). At most limits::max_errors errors: index-out-of-range, bad-divisor,
/// index-not-integer.
std::vector<Diagnostic> read_errors(const Diagram& diagram, const Extents& extents);

}  // namespace napkin
