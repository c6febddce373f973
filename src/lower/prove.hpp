#pragma once
// The proof that a kernel program's warps do things in order, whatever their timing: vector clocks over its own
// statements (race_checker.hpp).
#include <optional>
#include <string>
#include <vector>

#include "lower/kernel_program.hpp"

namespace napkin::lower {

/// The first fault in words; empty: there is none. `without`: a statement that is left out, or its barrier inside.
/// Pre: the kernel is one of a GPU.
std::string fault_of(const KernelProgram& program, const Statement* without = nullptr);

/// What happens where a synchronizing statement is left out.
struct Deletion {
    const Statement* statement = nullptr;
    std::string fault;  ///< empty: nothing is out of order without it
};
/// Each synchronizing statement of the program, left out in turn.
std::vector<Deletion> deletions(const KernelProgram& program);
/// Whether the statement orders warps, or a warp and what runs beside it.
bool synchronizes(const Statement& statement);

}  // namespace napkin::lower
