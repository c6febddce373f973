#pragma once
// Diagnostics as the public API has them.
#include <napkin/napkin.hpp>
#include <vector>

#include "support/source.hpp"

namespace napkin {

Error to_public(const Diagnostic& diagnostic);
std::vector<Error> to_public(const std::vector<Diagnostic>& diagnostics);

}  // namespace napkin
