#include "support/paths.hpp"

namespace napkin {

std::filesystem::path source_dir() { return NAPKIN_SOURCE_DIR; }
std::string in_sources(const std::string& path) { return (source_dir() / path).string(); }
std::string tool_path() { return NAPKIN_CLI; }

}  // namespace napkin
