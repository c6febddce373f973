#include "cost/sub_sizes.hpp"

#include <algorithm>

#include "support/ids.hpp"

namespace napkin {

SubSizes::SubSizes(const Liveness& live, const Extents& extents, const std::map<AxisId, std::int64_t>& by_user) {
    for (const CoreLoop& loop : live.loops) {
        if (!loop.is_sub) continue;
        const auto size = by_user.find(loop.axis);
        const std::int64_t extent = extents[loop.axis];
        sizes_[loop.axis] = size == by_user.end() ? extent : std::min(size->second, extent);
    }
}

Size SubSizes::in(Size size) const {
    for (const auto& [axis, part] : sizes_) size = size.substitute(Symbol{SymbolKind::subloop, axis}, Size(part));
    return size;
}

CoreColumns SubSizes::in(CoreColumns columns) const {
    for (auto* list : {&columns.memory, &columns.accumulators})
        for (MemoryColumn& column : *list) column.size = in(column.size);
    return columns;
}

KernelCost SubSizes::in(KernelCost cost) const {
    for (Size* size : {&cost.per_group, &cost.transfers}) *size = in(*size);
    for (ArrayTransfers& a : cost.arrays) a.per_group = in(a.per_group), a.per_launch = in(a.per_launch);
    for (MemoryColumn& column : cost.memory) column.size = in(column.size);
    return cost;
}

}  // namespace napkin
