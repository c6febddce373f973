#pragma once
// The loop of a kernel over the chunks of its stream.
#include <vector>

#include "derive/assembly.hpp"

namespace napkin {

/// The loop of a traversal, from 1 on, with an empty body where it has nothing to do. Its fold goes to the kernel;
/// `hoisted`: what stands before the loop.
Loop make_loop(Assembly& assembly, int traversal, Kernel& kernel, std::vector<Statement>& hoisted);

}  // namespace napkin
