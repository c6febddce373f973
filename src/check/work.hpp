#pragma once
// How much work an evaluation is, counted before it begins: what a check draws follows from the count and not from a
// clock, and is the same on every computer.
#include "derive/derive.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// What a check may take, in seconds: whoever waits for a first result waits no longer than for the compiler.
constexpr double check_seconds = 2;
/// Operations of an evaluator in a second, as they are counted here. It is the fewest of ten programs, with rows of
/// three points and of two hundred, on one core of an Intel Xeon at 2.5 GHz (2026-11-28). The most were 1e9.
constexpr double check_operations_per_s = 2e8;
constexpr double check_operations = check_seconds * check_operations_per_s;

/// Counts one operation for each node of a body at each point at which it is evaluated. Beginning a row of points and
/// compiling an equation count as well.
double evaluation_operations(const Diagram& diagram, const Extents& extents);
/// Work of the kernels in tiles of these sizes, where what is computed anew in every group counts as often.
double evaluation_operations(const Derived& derived, const Extents& extents, const PartitionSizes& sizes);

}  // namespace napkin
