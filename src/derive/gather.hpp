#pragma once
// Which equations become one kernel (Theorem 1), and along which axis it streams: a pure question of the algebra.
// Equations that are linked through arrays are gathered as far as one kernel can compute them. Kernels over one input
// are put beside each other. Then every such region is ranked against its own splittings.
#include <vector>

#include "derive/build.hpp"

namespace napkin {

struct GatherOptions {
    bool fuse = true;                                    ///< false: every equation is a kernel of its own
    std::vector<std::vector<std::string>> kernels = {};  ///< by hand: target names of each kernel
    std::vector<AxisId> stream = {};                     ///< must be streamed where they are reduced
};

/// Regions in an order in which they can be executed. Why equations that could share a kernel do not is noted in
/// `refusals`.
std::vector<Region> gather(KernelBuilder& builder, const GatherOptions& options, std::vector<Refusal>& refusals);

}  // namespace napkin
