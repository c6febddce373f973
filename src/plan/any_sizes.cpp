#include "derive/parts.hpp"
#include "plan/complete.hpp"
#include "support/ranges.hpp"

namespace napkin {

void choose_any_sizes(const ScheduledKernel& unscheduled, KernelSchedule& schedule) {
    if (!schedule.any.empty()) return;
    const auto numbers_parts = [&](AxisId axis) {
        return any_of(unscheduled.program->kernels,
                      [&](const TileKernel& kernel) { return kernel.parts.any() && merged_axis(kernel.parts) == axis; });
    };
    for (const SizesByAxis* sizes : {&schedule.group, &schedule.stream, &schedule.subloop})
        for (const auto& [axis, size] : *sizes)
            if (unscheduled.program->diagram.axis(axis).is_any &&
                (size.value != unscheduled.extent(axis) || numbers_parts(axis)))
                schedule.any[axis] = {unscheduled.extent(axis), "planned at this size; each size is an argument", false};
    if (const StreamParts& parts = unscheduled.kernel->parts;
        parts.any() && unscheduled.program->diagram.axis(parts.part).is_any)
        schedule.any[parts.part] = {unscheduled.extent(parts.part),
                                    "planned for so many parts; their number is an argument", false};
}

}  // namespace napkin
