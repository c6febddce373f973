#pragma once
// The C of an exported program: a header that says what it takes, and the code behind it. A GPU's is C, with the
// kernels' machine code, and opens the driver as it runs. A CPU's is C++, with the kernels' text and their threads.
#include <string>
#include <vector>

#include "export/program.hpp"

namespace napkin {

/// What callers write.
struct ExportedNames {
    std::string program;              ///< an identifier, with which all public names begin
    std::vector<std::string> sizes;   ///< of ExportedProgram::arguments
    std::vector<std::string> arrays;  ///< inputs, then outputs
};
ExportedNames exported_names(const ExportedProgram& program);

std::string exported_header(const ExportedProgram& program);
/// `cubins`: a GPU's machine code, by class, of those that are the first of their text. Error: no-formula, where a
/// number of a launch cannot be computed in C.
Result<std::string> exported_code(const ExportedProgram& program, const std::vector<std::string>& cubins);

/// The first class of the same text: its code is for both.
std::size_t class_of_code(const ExportedProgram& program, std::size_t index);
/// The kernels of a class as they are compiled. Their names differ from those of other classes.
KernelSource class_source(const ExportedProgram& program, std::size_t index);

}  // namespace napkin
