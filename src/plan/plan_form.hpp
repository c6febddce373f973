#pragma once
// Plans a form as it is, on a machine whose blocks of threads are settled (PlanOptions::warps). What comes before it
// chooses among forms, machines and blocks (choose.hpp).
#include <vector>

#include "plan/choose.hpp"

namespace napkin {

/// The plan of every kernel, whole or with its stream in parts. Pre and errors: those of choose_plan.
Result<Plan> plan_form(const Derived& derived, const Extents& extents, const Machine& machine,
                       const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
