#pragma once
// Integer arrays that index others: numbers for inputs that are not given, and a look at those that are before a kernel reads by them.
#include <functional>
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "run/kernel.hpp"
#include "run/tensor.hpp"
#include "support/result.hpp"

namespace napkin {

/// Uniform from 0 to the bound, value i by the seed and i alone.
void fill_indices(Tensor& tensor, std::uint64_t seed, std::int64_t greatest);

/// Errors: index-out-of-range (diagram/check_indices.hpp). A kernel reads nothing outside of its arrays whatever the values are; where
/// they lead outside, it would take zeros. Pre: the views have passed CpuKernel::check; where some have not, nothing is looked at.
Status check_index_inputs(const Diagram& diagram, const Extents& extents, const std::vector<KernelInput>& inputs);

/// The same for what indices that a kernel has just computed have a part in. `deciding` are arrays_in_indices of the diagram, `fresh` those
/// of them that the kernel wrote, `in_memory` gives an array that is known by now, or nullopt.
Status check_computed_indices(const Diagram& diagram, const Extents& extents, const std::vector<ArrayId>& deciding,
                              const std::vector<ArrayId>& fresh,
                              const std::function<std::optional<KernelInput>(ArrayId)>& in_memory);

}  // namespace napkin
