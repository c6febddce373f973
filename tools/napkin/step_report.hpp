#pragma once
// The paper's six steps of a file, as the options say: what `plan --steps` prints, charts draw and reports show.
#include "napkin/command.hpp"
#include "steps/steps.hpp"

namespace napkin::cli {

/// A schedule that says what only a kernel has is read as that kernel's; any other as choices of the paper's hierarchy.
Result<StepReport> step_report(const Options& options);

}  // namespace napkin::cli
