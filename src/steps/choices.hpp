#pragma once
// What schedules fix of the steps, by the names of a kernel's axes and variables.
#include "steps/steps.hpp"

namespace napkin {

/// Pre: `items` are of this kernel. Errors: unknown-axis, unknown-unit, bad-schedule, bad-precision (no such type).
Result<StepChoices> step_choices(const Diagram& diagram, const Machine& machine, const std::vector<ScheduleItem>& items);
/// Names that choices mention and the kernel lacks: unknown-variable (the nearest).
Status check_names(const StepChoices& choices, const std::vector<ScheduleItem>& items, const Assigned& assigned);

}  // namespace napkin
