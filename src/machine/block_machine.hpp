#pragma once
// A GPU as one of its blocks sees it: a vector processor. A block of warps has an even share of its core (SM), a warp is a vector with a
// value in every thread, and the registers of a thread are the vector registers.
#include "machine/machine.hpp"

namespace napkin {

/// Schedulers of a core, each of which issues an instruction a clock.
inline constexpr double schedulers_a_core = 4;

/// Of the machine that block_machine makes: the blocks that share a core.
inline double blocks_a_core(const Machine& machine) { return schedulers_a_core / machine.issue_per_clock.value; }

/// The machine whose cores are the blocks that run at the same time, each of `warps` warps, `blocks_a_core` of them on every SM. Rates are the
/// sustained ones where the file has them. What a GPU's file does not say of code is estimated, with its source.
/// Pre: a GPU with thread limits.
Machine block_machine(const Machine& gpu, int warps, int blocks_a_core);

}  // namespace napkin
