#pragma once
// Chooses the sizes, the vector axis and the panel of one kernel by search. Its tile program is completed by rules and
// simulated at many sizes.
#include <cstddef>
#include <memory>
#include <string>

#include "plan/choose.hpp"
#include "plan/overrides.hpp"

namespace napkin {

/// Chooses what `hand` and `given` (a file's choices for the statements) leave open of the kernel's schedule.
/// Pre: `model` is of the kernel and of the machine that runs it; `text` is text_of the kernel where the options have
/// ratings. Errors: memory-exceeded.
Result<KernelPlan> choose_kernel(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                                 const Simulator& model, const Overrides& hand, const PlanOptions& options,
                                 KernelSchedule given, const std::string& text);

}  // namespace napkin
