#pragma once
// A group writes its own tiles and nothing else, so that groups may run in any order.
#include <string>

#include "numeric/cpu_kernel_case.hpp"
#include "run/jit.hpp"

namespace napkin::cpu_case {

/// Runs the kernels with their groups from first to last and with arrays that begin at a cache line. Then it runs them
/// from last to first, with arrays that begin one number behind. Returns "" if both make the same numbers, bit by bit,
/// and neither writes past an array's end. In one of the two orders a write beyond a group's tile would be hidden by a
/// later group that writes there.
std::string fault_of_order(const Case& c, const JitModule& module);

}  // namespace napkin::cpu_case
