#pragma once
// Which C++ compiler the kernels are compiled with, and what a cache key says about it and about the processor.
#include <string>
#include <vector>

#include "run/jit.hpp"

namespace napkin {

/// The processor's model and features, as far as -march=native looks at them.
std::string processor_identity();

}  // namespace napkin
