#pragma once
// A group writes its own tiles and nothing else, so that groups may run in any order.
#include <string>

#include "numeric/cpu_kernel_case.hpp"
#include "run/jit.hpp"

namespace napkin::cpu_case {

/// "" where the kernels make the same numbers, bit by bit, whether their groups run from first to last, with arrays
/// that begin at a cache line, or from last to first, with arrays that begin one number behind; and where neither
/// writes past an array's end. What a group writes beyond its tile would be hidden by a later group that writes there,
/// in one of the two orders.
std::string fault_of_order(const Case& c, const JitModule& module);

}  // namespace napkin::cpu_case
