#pragma once
// The processor at hand, as its own description has it.
#include <string>

namespace napkin {

/// Its model and features, as far as a compiler's -march=native looks at them.
std::string processor_identity();

}  // namespace napkin
