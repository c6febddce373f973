#pragma once
// The text of a tile program, read back: what is printed is the whole program.
#include <string_view>

#include "support/result.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// Reads what to_string printed. Only the sizes, groups, variables and statements are read; line numbers and the
/// table's derived columns are not. Arrays and axes are those of derived.diagram. Errors: the first of those of the
/// language's grammar; unknown-axis, unknown-array (nearest name).
Result<SizedProgram> parse_tile(std::string_view text, const Derived& derived);

}  // namespace napkin
