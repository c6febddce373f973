#pragma once
// One kernel's source, for whichever processor its program is for.
#include <string>
#include <string_view>

#include "lower/size_formulas.hpp"

namespace napkin::writers {

struct KernelText {
    std::string text;  ///< the functions of its statements, then the entry point
    lower::LaunchFormulas launch = {};
};
/// Everything but the prelude, which declares what it uses.
KernelText kernel_text(const lower::KernelProgram& program, const std::string& entry, std::string_view prelude);

}  // namespace napkin::writers
