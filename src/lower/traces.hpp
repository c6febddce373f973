#pragma once
// What the warps of a kernel program do, as events for the race checker: in each of the runs that together find all
// that there is to find.
#include <cstdint>
#include <optional>
#include <vector>

#include "lower/kernel_program.hpp"
#include "lower/race_checker.hpp"
#include "schedule/accesses.hpp"

namespace napkin::lower {

/// K blocks of others, where warpgroups run their own. Each warp has one of these, or half of all. Or the first warp
/// has nothing else, or both have: behind their own, or before them.
enum class Idle : std::uint8_t { one_block, half, first, both, both_before };
/// A run: K blocks of each loop, and which of them are of others.
struct Run {
    std::vector<std::int64_t> turns;
    Idle idle = Idle::one_block;
};
std::vector<Run> runs_of(const ScheduledKernel& kernel);

/// The first fault of a run. `without`: a statement that is left out, or its barrier inside. Pre: the kernel is one of
/// a GPU; `touches` are its own accesses.
std::optional<Fault> fault_in(const KernelProgram& program, const Accesses& touches, const Run& run,
                              const Statement* without = nullptr);

}  // namespace napkin::lower
