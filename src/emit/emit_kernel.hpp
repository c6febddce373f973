#pragma once
// One kernel's source, for whichever processor its schedule is for.
#include <string>
#include <string_view>

#include "schedule/scheduled.hpp"

namespace napkin::writers {

/// Everything but the prelude, which declares what it uses: the functions of its statements, then the entry point.
std::string kernel_text(const ScheduledKernel& kernel, const std::string& entry, std::string_view prelude);

}  // namespace napkin::writers
