#pragma once
// A GPU as one of its blocks sees it: a vector processor. A block of warps has an even share of its core (SM), a warp
// is a vector with a value in every thread, and the registers of a thread are the vector registers.
#include <cstdint>

#include "machine/machine.hpp"

namespace napkin {

/// Schedulers of a core, each of which issues an instruction a clock.
inline constexpr double schedulers_a_core = 4;

/// The blocks that share a core, on the machine that block_machine makes.
inline double blocks_a_core(const Machine& machine) { return schedulers_a_core / machine.issue_per_clock.value; }

/// Registers of a thread in a block in which `copying` warps ask for the copies that `computing` warps compute with:
/// what every thread has at the launch, and what the two kinds change that to.
struct RoleRegisters {
    int launch = 0, computing = 0, copying = 0;
};
/// Warps come in whole warpgroups of four, and of registers in eights (PTX ISA: setmaxnreg). Those that copy keep the
/// fewest that the instruction takes, and what the others cannot share evenly. Pre: computing and copying are multiples
/// of 4, and a thread has 24 registers at least.
RoleRegisters role_registers(std::int64_t block_registers, std::int64_t computing, std::int64_t copying);

/// The machine whose cores are the blocks that run at the same time, each of `warps` warps, `blocks_a_core` of them on
/// every SM, beside `producer_warps` that ask for copies. Rates are the sustained ones where the file has them. What a
/// GPU's file does not say of code is estimated, with its source. Pre: a GPU with thread limits.
Machine block_machine(const Machine& gpu, int warps, int blocks_a_core, int producer_warps = 0);

}  // namespace napkin
