#pragma once
// Groups of four warps that run products together (fragments.hpp), beside a role that copies: which chunks each runs,
// whether they take turns at the matrix unit, and what of a turn's results is rounded before the next one.
#include <optional>

#include "schedule/scheduled.hpp"

namespace napkin {

/// Whether a product of the next turn takes a variable in registers as its first factor, after the products that begin
/// there. It is rounded for that as its own turn ends, when nothing else reads it and no product that read what was
/// rounded before is under way, so that it takes half as many registers while the next turn's results come to be. Pre:
/// slots are applied.
bool is_rounded_ahead(const ScheduledKernel& kernel, VariableId id);
/// Masks leave a group of four warps fewer chunks of the loop than the block, as they tell rows apart, or none of its
/// rows is left in the last tile: it runs its own, where a role copies the tiles of all.
bool have_own_k_blocks(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// The part of the chunks that a group's warps would run which none of a warpgroup's own rows has use for.
double fraction_of_skipped_blocks(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Groups of warps that run products together and may take turns at it, in the loop whose body begins with its
/// products; none: fewer than two of them or more than four, products that do not stand side by side before what is
/// computed on fragments, or no such loop.
struct PingPong {
    LoopId loop = {};
    StepId first = {}, last = {};
    std::int64_t groups = 0;
};
std::optional<PingPong> ping_pong(const ScheduledKernel& kernel);

}  // namespace napkin
