#pragma once
// The counting interpreter without the arithmetic: walks every group, chunk and statement of a tile program as interpret() does,
// and counts the tiles that move and live without filling them. For sizes at which computing the values would take hours.
#include <optional>
#include <vector>

#include "tile/interpret.hpp"

namespace napkin {

/// The same counts as interpret(), by the same walk. nullopt when more than `max_statements` statements would be walked.
/// Pre: the program verifies.
std::optional<std::vector<KernelCounts>> count(const SizedProgram& program,
                                               std::int64_t max_statements = std::int64_t{1} << 28);

}  // namespace napkin
