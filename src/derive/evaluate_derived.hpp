#pragma once
// The meaning of a derived form when its streams are split: what the merge of a fold promises.
#include "derive/derive.hpp"

namespace napkin {

/// As evaluate(derived, …), but every loop whose states all belong to folds is cut at `split` of its axis, 0 < split <
/// 1, rounded to whole values. Both parts run with states of their own, and each fold's states are merged. The fold's
/// finish gives its results in place of the statements that compute them. Loops without states, and over axes of one
/// value, run whole. Returns the number of folds that were merged, over all groups.
std::int64_t evaluate_by_merge(const Derived& derived, const Extents& extents, const PartitionSizes& sizes,
                               double split, Values& values);

/// As evaluate(derived, …), but what every statement computes is rounded to single precision, as accumulators in a
/// kernel are.
void evaluate_in_single_precision(const Derived& derived, const Extents& extents, const PartitionSizes& sizes,
                                  Values& values);

}  // namespace napkin
