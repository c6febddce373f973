#pragma once
// Kernels over one input, beside each other.
#include <vector>

#include "derive/gather_streams.hpp"

namespace napkin {

/// Numbers of the parts that one kernel may compute, ascending.
using SiblingGroup = std::vector<std::size_t>;

/// The equations of the group's parts, in the diagram's order.
std::vector<ArrayId> equations_of(const KernelBuilder& builder, const SiblingGroup& group,
                                  const std::vector<Gathering>& parts);

/// Parts that no other feeds from one another and that read the same array, in groups that one kernel can compute. Each
/// group stands after those that feed it; else as they stand in the diagram. Why parts are not joined is noted in
/// `refusals`.
std::vector<SiblingGroup> siblings(KernelBuilder& builder, StreamChooser& streams, const std::vector<Gathering>& parts,
                                   std::vector<Refusal>& refusals);

}  // namespace napkin
