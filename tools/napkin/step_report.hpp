#pragma once
// The paper's six steps of a file, as the options say: what `plan --steps` prints, charts draw and reports show.
#include "napkin/command.hpp"
#include "steps/report.hpp"

namespace napkin::cli {

/// A schedule that says what only a kernel has is read as that kernel's; any other as choices of the paper's hierarchy.
Result<StepReport> step_report(const Options& options, StepTexts texts = StepTexts::tried);

/// The same on each of several machines, without the texts of the steps and their trials. Errors: those of all, where
/// none has steps.
Result<std::vector<StepsOnMachine>> steps_on_machines(const Options& options, const std::vector<std::string>& machines);

}  // namespace napkin::cli
