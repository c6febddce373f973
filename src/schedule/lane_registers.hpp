#pragma once
// Variables of a CTA without tensor cores that lie in registers of its threads (MemorySpace::lanes).
//
// A variable with one wide axis is distributed over all threads. Neighbours along the axis lie in a thread's registers,
// and those of neighbouring threads follow. After all threads have their part, the next round begins. Statements over
// the axis go through it in that order, so each thread finds what it needs in its own registers. A variable with a
// single value has a copy in every thread. Neither takes shared memory, and neither needs a barrier.
#include <cstdint>

#include "schedule/scheduled.hpp"

namespace napkin {

/// How the threads of a CTA hold a variable.
struct LaneTile {
    AxisId axis = -1;          ///< along which it is distributed; -1: every thread holds the one value
    std::int64_t vectors = 1;  ///< adjacent values of a thread in one round
    std::int64_t rounds = 1;
    std::int64_t values_a_round = 1;                                        ///< of all threads
    [[nodiscard]] std::int64_t values() const { return vectors * rounds; }  ///< of a thread
    /// The warp that holds the value which lies so far from the tile's begin.
    [[nodiscard]] std::int64_t warp_of(std::int64_t local, std::int64_t lanes) const {
        return local % values_a_round / (vectors * lanes);
    }
    friend bool operator==(const LaneTile&, const LaneTile&) = default;
};
/// Pre: the atoms are chosen.
LaneTile lane_tile(const ScheduledKernel& kernel, VariableId id);
/// How the statement goes through its wide axis, where a variable that it accesses is distributed so.
std::optional<LaneTile> lanes_of(const ScheduledKernel& kernel, const Step& step);

/// Which variables may lie in lanes together, beside those that the user holds otherwise. A variable must be accessed
/// by statements of one shape alone. Such a statement goes through one wide axis in vectors, and reads and writes each
/// value only where it is. Or all warps share its reduction over that axis. `held_alone`: only those that are held so
/// are asked for. Pre: the atoms are chosen.
ByVariable<bool> may_lie_in_lanes(const ScheduledKernel& kernel, bool held_alone = false);
/// Whether the variable in lanes is loaded for one map in which it is read round by round, or stored round by round by
/// the map that computes it. Registers then hold a round of it at a time.
bool passes_by_rounds(const ScheduledKernel& kernel, VariableId id);
/// The most registers that a thread needs at a time for the variables in lanes. Pre: the atoms are chosen.
std::int64_t lane_registers(const ScheduledKernel& kernel);

}  // namespace napkin
