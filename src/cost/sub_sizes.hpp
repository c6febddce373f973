#pragma once
// Subloops have their sizes by hand: in the formulas of a cost, numbers stand for their letters.
#include <cstdint>
#include <map>

#include "cost/accumulators.hpp"
#include "cost/transfers.hpp"
#include "tile/liveness.hpp"

namespace napkin {

class SubSizes {
public:
    SubSizes() = default;
    /// Sizes of the subloops of a core, by hand; those without a size have the whole axis.
    SubSizes(const Liveness& live, const Extents& extents, const std::map<AxisId, std::int64_t>& by_user);

    [[nodiscard]] const std::map<AxisId, std::int64_t>& sizes() const { return sizes_; }
    [[nodiscard]] Size in(Size size) const;
    [[nodiscard]] CoreColumns in(CoreColumns columns) const;
    [[nodiscard]] KernelCost in(KernelCost cost) const;

private:
    std::map<AxisId, std::int64_t> sizes_;
};

}  // namespace napkin
