#pragma once
// Register liveness of a kernel program: which values of variables a consumer's thread holds at each of its statements.
//
// A value is alive from the statement that writes it to the last one that reads it. Loops hand values on to their next
// iteration. The planner estimates the same number on the schedule (most_registers, schedule/fragment_registers.hpp).
#include <cstdint>
#include <string>
#include <vector>

#include "lower/kernel_program.hpp"

namespace napkin::lower {

struct RegistersAlive {
    std::int64_t most = 0;              ///< 32-bit registers of a thread
    std::string at;                     ///< the first statement around which so many are alive, up to its semicolon
    std::vector<VariableId> variables;  ///< whose values these are, ascending
};

/// The most registers that hold values of variables at the same time. Those that a statement needs only while it runs,
/// such as addresses and sums of a thread, are not among them. Pre: the kernel is on the tensor cores.
RegistersAlive registers_alive(const KernelProgram& program);

}  // namespace napkin::lower
