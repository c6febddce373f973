#pragma once
// Takes out of emitted source what says nothing to its reader: writers declare an axis's index, or where a tile begins,
// wherever a statement may need it, and put every statement in a block of its own.
#include <string>
#include <string_view>

namespace napkin::writers {

/// The same program, shorter. What is declared with [[maybe_unused]], or gives an argument another name, goes where
/// nothing after it in its block mentions it, and the mark goes from what stays. The braces go of a block that is all
/// of another one, or that holds one loop or one condition alone. A loop over one statement is one line where that is
/// not long. Lines that end in '{' open a block, and those that begin with '}' close one.
std::string tidied(std::string_view source);

}  // namespace napkin::writers
