#pragma once
// The order of alternatives without a machine. Those that serve at every size come before those that need one core or a
// short axis. Then the order is by FLOPs up to a factor of two, then by compulsory transfers, at the sizes that are
// known.
#include <optional>
#include <vector>

#include "derive/build.hpp"

namespace napkin {

/// What kernels cost whatever machine runs them, at the sizes that are known.
struct GatheringCost {
    bool one_core = false;  ///< some kernel can only be cut into groups that repeat work
    /// arrays that lie whole at the core along an axis that is reduced, where a stream would bring them in chunks
    int whole = 0;
    double flops = 0, transfers = 0;
    std::size_t kernels = 0;
    GatheringCost& operator+=(const GatheringCost& other);
};
/// Nothing where the equations are no kernel.
std::optional<GatheringCost> cost_of(KernelBuilder& builder, const Gathering& g);
/// The order among alternatives of which the least has so many FLOPs.
bool ranks_before(const GatheringCost& a, const GatheringCost& b, double least_flops);

/// At most sixteen of the candidates that can be built, the best first, each with the condition on sizes under which it
/// is the best. The first candidate can be built.
Region ranked(KernelBuilder& builder, const std::vector<std::vector<Gathering>>& candidates);

}  // namespace napkin
