#pragma once
// One kernel's source, for whichever processor its program is for.
#include <string>
#include <string_view>

#include "lower/kernel_program.hpp"

namespace napkin::writers {

/// Everything but the prelude, which declares what it uses: the functions of its statements, then the entry point.
std::string kernel_text(const lower::KernelProgram& program, const std::string& entry, std::string_view prelude);

}  // namespace napkin::writers
