#pragma once
// Where the sources and the tool are. One object alone holds these paths, so that builds in different folders share all
// others in ccache.
#include <filesystem>
#include <string>

namespace napkin {

std::filesystem::path source_dir();
/// The file or folder at this path within the sources.
std::string in_sources(const std::string& path);
/// The tool of the command line; empty where it is not built.
std::string tool_path();

}  // namespace napkin
