#pragma once
// What a command writes to where --output says, or prints.
#include <string>

#include "napkin/command.hpp"

namespace napkin::cli {

/// Prints the text where the path is empty or "-". Errors: unwritable-file, disk-full.
ExitCode write_output(const std::string& path, const std::string& text, const Options& options);

}  // namespace napkin::cli
