#pragma once
// The six steps of a kernel as they are told, and the schedule that gives them again.
#include "steps/steps.hpp"

namespace napkin {

/// The lines of the program, without its table of variables.
std::string pseudocode(const StepContext& context, const TileKernel& kernel);
/// `expanded`: the tile program with letters in indices, of which `k` is the kernel. `made` has all but its steps.
std::vector<PaperStep> narrated_steps(const Derived& derived, const TileProgram& expanded, std::size_t k,
                                      const std::set<AxisId>& subloops, const StepContext& context,
                                      const Assigned& assigned, const KernelSteps& made);
/// The statements of head, body and tail, and why they stand there.
std::vector<StepChange> expansion(const StepContext& context, const TileKernel& kernel);
/// What each size must be a multiple of, and which sizes are none.
PaperStep divisor_step(const StepContext& context, const SizeDivisors& divisors);
/// The line of a schedule's file that says which machine it is for; nothing of a machine that has no name to read it
/// by.
std::string machine_text(const Machine& machine);
/// The lines of what is_of_views, without their ends.
std::vector<std::string> reading_lines(const StepChoices& choices);
std::string schedule_of(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                        const KernelSteps& steps);

}  // namespace napkin
