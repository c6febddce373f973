#pragma once
#include "lower/kernel_program.hpp"

namespace napkin::lower {

/// The statements of a scheduled kernel, for whoever orders them: they refer to the kernel, and no operation's
/// computation is chosen. Pre: all passes of the schedule before the barriers are applied.
KernelProgram with_statements(const ScheduledKernel& kernel);
/// The kernel program of a scheduled kernel. Pre: all passes of the schedule are applied.
KernelProgram lowered(const std::shared_ptr<const ScheduledKernel>& kernel);
LoweredProgram lowered(const ScheduledProgram& program);
/// Axes of any size that output tiles or K blocks cut. All tiles of such an axis are alike but the last one.
std::vector<AxisId> size_arguments(const ScheduledKernel& kernel);

}  // namespace napkin::lower
