#pragma once
// Removes from emitted source what says nothing to its reader. Writers declare an axis's index, or where a tile begins,
// wherever a statement may need it. They also put every statement in a block of its own.
#include <string>
#include <string_view>

namespace napkin::writers {

/// The same program, shorter. A declaration with [[maybe_unused]], or one that renames an argument, goes where nothing
/// after it in its block mentions it. Those that stay lose the mark. The braces go of a block that is all of another
/// one, or that holds one loop or one condition alone. A loop over one statement is one line where that is not long.
/// Lines that end in '{' open a block, and those that begin with '}' close one.
std::string tidied(std::string_view source);

}  // namespace napkin::writers
