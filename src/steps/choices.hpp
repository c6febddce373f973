#pragma once
// What schedules fix of the steps, by the names of a kernel's axes and variables.
#include "steps/steps.hpp"

namespace napkin {

/// Pre: `items` are of this kernel. Errors: unknown-axis, unknown-unit, bad-schedule, bad-precision (no such type).
Result<StepChoices> step_choices(const Diagram& diagram, const Machine& machine, const std::vector<ScheduleItem>& items);
/// Names that choices mention and the kernel lacks: unknown-variable (the nearest).
Status check_names(const StepChoices& choices, const std::vector<ScheduleItem>& items, const Assigned& assigned);
/// Shares of warpgroups: not-groupable (what is), size-out-of-range, broken-divisor (the nearest group of whole
/// warpgroups).
Status check_warpgroup(const StepContext& context, const StepChoices& choices, const Kernel& kernel);
/// The streams, and the axes of what contractions accumulate: subloops may cut these.
std::vector<AxisId> axes_of_subloops(const std::vector<StatementWork>& work);
/// Checks subloops of streams, and of axes of what contractions accumulate; a part lies in what it is a part of.
/// Errors: no-subloop, size-out-of-range.
Status check_subloops(const StepContext& context, const StepChoices& choices, const std::vector<StatementWork>& work);
/// A piece of what is passed on is no larger than what is passed. Errors: size-out-of-range.
Status check_pieces(const StepContext& context, const StepChoices& choices, const Assigned& assigned);

}  // namespace napkin
