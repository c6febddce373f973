#include "schedule/tile_copy.hpp"

namespace napkin {

TileCopy tile_copy(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const Layout& layout = kernel.layout(id);
    TileCopy out;
    out.columns = kernel.place(id).innermost;
    std::vector<std::int64_t> count;
    for (const Span& span : kernel.scope(layout.scope)) count.push_back(span.tile);
    const std::vector<std::int64_t> origin(count.size(), 0);
    std::vector<std::int64_t> sizes;
    for (const Index& dim : variable.dims) sizes.push_back(range_of(dim, origin, count).size());
    for (std::size_t d = 0; d < sizes.size(); ++d)
        if (static_cast<int>(d) != out.columns && sizes[d] > 1) out.rows = static_cast<int>(d);
    // Cells of several values are made within one part.
    if (layout.terms > 1 && layout.term_dimension != out.columns) out.rows = layout.term_dimension;
    for (std::size_t d = 0; d < sizes.size(); ++d)
        (static_cast<int>(d) == out.rows || static_cast<int>(d) == out.columns ? out.part : out.parts) *= sizes[d];
    const std::int64_t threads = kernel.schedule.warps.value * kernel.unit.warp_threads;
    out.by_warps = kernel.in_blocks() && out.parts > 1 && 2 * out.part <= threads;
    return out;
}

}  // namespace napkin
