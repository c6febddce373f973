#pragma once
// The compilers that kernels are tested with.
#include <optional>
#include <string>
#include <vector>

#include "run/jit.hpp"

namespace napkin {

/// The one that napkin takes by itself, by the name "", the oldest of each kind that its messages offer, and a new one.
std::vector<std::string> tested_compilers();
/// Nothing where it is not installed, or is the same as one before it among those.
std::optional<Compiler> installed_compiler(const std::string& name);

}  // namespace napkin
