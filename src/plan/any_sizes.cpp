#include "plan/complete.hpp"
#include "support/ranges.hpp"

namespace napkin {

void choose_any_sizes(const ScheduledKernel& unscheduled, KernelSchedule& schedule) {
    if (!schedule.any.empty()) return;
    for (const SizesByAxis* sizes : {&schedule.group, &schedule.stream, &schedule.subloop})
        for (const auto& [axis, size] : *sizes)
            if (unscheduled.program->diagram.axis(axis).is_any && size.value != unscheduled.extent(axis))
                schedule.any[axis] = {unscheduled.extent(axis), "planned at this size; each size is an argument", false};
}

}  // namespace napkin
