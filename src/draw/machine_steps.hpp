#pragma once
// The paper's steps of a program on a machine as pictures (Figs 26, 30 to 33): its kernels with subloops, levels,
// precision, divisors and places.
#include <string>
#include <vector>

#include "draw/circuit.hpp"
#include "steps/steps.hpp"

namespace napkin::draw {

/// In the paper's order, each with all that those before it show.
const std::vector<std::string>& machine_step_names();

/// `memory`: the name of the machine's highest level. Pre: the step is one of those named, or "pseudocode expansion",
/// which comes before them and knows no machine.
Drawing machine_step_drawing(const StepReport& report, const std::string& memory, const std::string& step);

/// ", kernel NAME" where there are several.
std::string kernel_of(const std::string& kernel, std::size_t num_kernels);

}  // namespace napkin::draw
