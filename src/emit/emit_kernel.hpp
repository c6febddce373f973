#pragma once
// One kernel's source, for whichever processor its program is for.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lower/kernel_program.hpp"

namespace napkin::writers {

struct KernelText {
    std::string text;                        ///< the functions of its statements, then the entry point
    std::vector<std::int64_t> numbers = {};  ///< arguments of a launch, behind the strides
};
/// Everything but the prelude, which declares what it uses.
KernelText kernel_text(const lower::KernelProgram& program, const std::string& entry, std::string_view prelude);

}  // namespace napkin::writers
