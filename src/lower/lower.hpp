#pragma once
#include "lower/kernel_program.hpp"

namespace napkin::lower {

/// The kernel program of a scheduled kernel. Pre: all passes of the schedule are applied.
KernelProgram lowered(const std::shared_ptr<const ScheduledKernel>& kernel);
LoweredProgram lowered(const ScheduledProgram& program);

}  // namespace napkin::lower
