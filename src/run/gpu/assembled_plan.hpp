#pragma once
// A GPU's plan, with what the assembler says of its kernels taken into account.
#include <functional>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/accepted.hpp"

namespace napkin::gpu {

/// The plan whose kernels the assembler's report does not refuse (assembler.hpp); the planner's first where NVRTC is
/// not found or does not compile for the machine. A plan that is not wanted is not shown to the assembler, and taken.
/// Pre: a GPU. Errors: those of choose_plan.
Result<AcceptedPlan> assembled_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                                    const PlanOptions& options = {},
                                    const std::function<bool(const Plan&)>& is_wanted = {});

}  // namespace napkin::gpu
