// The standard library of the language, lib/std.nk, as it was when napkin was built.
#pragma once

#include <string_view>

namespace napkin {

/// The text of lib/std.nk; empty where the build found no such file. Valid for the life of the program.
std::string_view std_library_text();

}  // namespace napkin
