#pragma once
// A GPU as one of its CTAs sees it: a vector processor. A block of warps has an even share of its core (SM). A warp is
// a vector with a value in every thread, and the registers of a thread are the vector registers.
#include <cstdint>

#include "machine/machine.hpp"

namespace napkin {

/// Warp schedulers of an SM, each of which issues an instruction a clock.
inline constexpr double schedulers_a_core = 4;

/// The blocks that share a core, on the machine that block_machine makes.
inline double blocks_a_core(const Machine& machine) { return schedulers_a_core / machine.issue_per_clock.value; }

/// Register budgets of a thread in a block with `copying` producer warps and `computing` consumer warps. Every thread
/// has `launch` registers at first. Then setmaxnreg changes them to the other two.
struct RoleRegisters {
    int launch = 0, computing = 0, copying = 0;
};
/// Warps come in whole warpgroups of four, and registers in multiples of eight (PTX ISA: setmaxnreg). Producers keep
/// the fewest that the instruction takes, and what the consumers cannot share evenly. Pre: computing and copying are
/// multiples of 4, and a thread has 24 registers at least.
RoleRegisters role_registers(std::int64_t block_registers, std::int64_t computing, std::int64_t copying);

/// The part of a thread's registers that tiles may take where no warps copy for others; the rest is for addresses and
/// operands. Estimated.
inline constexpr double share_of_registers = 0.75;
/// The machine whose cores are the blocks that run at the same time, each of `warps` warps, `blocks_a_core` of them on
/// every SM, beside `producer_warps` that ask for copies. Rates are the sustained ones where the file has them. What a
/// GPU's file does not say of code is estimated, with its source. Pre: a GPU with thread limits.
Machine block_machine(const Machine& gpu, int warps, int blocks_a_core, int producer_warps = 0);

}  // namespace napkin
