#pragma once
// Numbers for the axes: defaults of `sizes`, overridden by --set, derived ones computed, extents of affine reads
// checked.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "support/result.hpp"

namespace napkin {

/// Extent of every axis; at least 1.
using Extents = ByAxis<std::int64_t>;

/// Binds every axis, also those whose sizes follow from the overrides (solve_sizes.hpp). An axis that nothing runs over
/// and that has no size gets 1.
/// Errors:
/// - unknown-axis (nearest name), missing-size (which axes, where), bad-size (non-positive, not an integer);
/// - size-cycle (a size that depends on itself), size-overflow (an array or an iteration space past 2^62);
/// - index-out-of-range (X[i + w]: what it reaches, what there is), unless a condition keeps the read from being taken;
/// - bad-divisor and index-not-integer (in an index, sizes that do not divide as they must).
Result<Extents> bind_sizes(const Diagram& diagram, const std::map<std::string, std::int64_t>& overrides = {});

/// Number of values of an array; the extents were bound, so it fits 2^62.
std::int64_t count_values(const Diagram& diagram, ArrayId array, const Extents& extents);

/// Moves the point to the next one of the axes' box, the last axis fastest; false, and at the first one again, past the
/// end.
bool next_point(const std::vector<AxisId>& axes, const Extents& extents, std::vector<std::int64_t>& point);

}  // namespace napkin
