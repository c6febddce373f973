#pragma once
// An exported program on disk.
#include <string>
#include <vector>

#include "export/program.hpp"

namespace napkin {

/// Writes NAME.h and the code into the directory, which is made where it is missing: for a GPU NAME.c, for a CPU
/// NAME.cpp, and libNAME.so compiled from it. The paths of what was written. Errors: unwritable-file, disk-full,
/// no-formula, those of compile_cuda and of compiled_object.
Result<std::vector<std::string>> write_library(const ExportedProgram& program, const std::string& directory);

}  // namespace napkin
