#pragma once
// The passes of a schedule, as one list. Planning a kernel and reading its schedule back run the same passes. Planning
// first chooses what the schedule leaves open in a pass (plan/complete.cpp). The pass then applies what the schedule
// says. A new pass is a row here and a file of its own.
#include <cstdint>
#include <memory>
#include <string_view>

#include "schedule/scheduled.hpp"
#include "support/function_ref.hpp"

namespace napkin {

/// In the order in which they run. A comment says what the schedule has after the pass.
enum class SchedulePass : std::uint8_t {
    orders,        ///< Place::innermost
    atoms,         ///< blocks and loops of statements
    fragments,     ///< statements on the tensor cores
    fusions,       ///< Atom::run and follows; applied: all loops of statements
    storage,       ///< Place::holding
    roles,         ///< producer warps
    slots,         ///< the modulo schedule of each loop; applied: prologue, body and epilogue
    ping_pong,     ///< whether warpgroups alternate
    rescaling,     ///< when running maxima move
    stages,        ///< of operands in loops
    staging,       ///< staging tiles of results
    group_stages,  ///< stages of operands that are loaded once per tile
    scheduler,     ///< the tile scheduler
    column_parts,  ///< parts of a product's columns
    arena,         ///< applied: layouts, lifetimes, addresses
    barriers,      ///< applied: waits, releases and barriers
    end,           ///< no pass
};

/// What chooses in a pass.
using Choosing = FunctionRef<void(SchedulePass, ScheduledKernel&)>;

/// Runs the passes from `begin` to the one before `end` on a kernel that has sizes. Pre: the earlier passes have run.
void run_passes(ScheduledKernel& kernel, Choosing choose, SchedulePass end = SchedulePass::end, SchedulePass begin = {});

/// The kernel under a schedule that leaves nothing open: its sizes and all passes.
ScheduledKernel scheduled(const std::shared_ptr<const TileProgram>& program, std::size_t kernel, const Extents& extents,
                          const KernelSchedule& schedule, const VectorUnit& unit);

}  // namespace napkin
