#include "plan/complete.hpp"
#include "support/ranges.hpp"

namespace napkin {

void choose_any_sizes(ScheduledKernel& kernel) {
    if (!kernel.schedule.any.empty()) return;
    for (const AxisId axis : kernel.extents.ids()) {
        const auto is_cut = [&](const Scope& scope) { return scope[axis].tile < kernel.extent(axis); };
        if (kernel.program->diagram.axis(axis).is_any && any_of(kernel.scopes, is_cut))
            kernel.schedule.any[axis] = {kernel.extent(axis), "planned at this size; each size is an argument", false};
    }
}

}  // namespace napkin
