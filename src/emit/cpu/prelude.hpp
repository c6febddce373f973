#pragma once
// The text that every emitted CPU kernel begins with: vectors, their mathematics, and the storage types. It stands in
// prelude_vectors.inc, emit/prelude_integers.inc, prelude_math.inc, prelude_types.inc and prelude_flush.inc.
#include <string_view>

namespace napkin::cpu {

/// All of it, in namespace napkin_cpu. It includes nothing, so compiling it takes a few milliseconds.
std::string_view prelude_text();

}  // namespace napkin::cpu
