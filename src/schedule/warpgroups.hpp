#pragma once
// Consumer warpgroups beside producer warps (fragments.hpp): which K blocks each runs, whether they run in ping-pong,
// and which results of an iteration are rounded before the next one.
#include <optional>

#include "schedule/scheduled.hpp"

namespace napkin {

/// Whether a product of the next iteration takes a variable in registers as its first factor, after the products that
/// begin that iteration. The variable is then rounded as its own iteration ends. By then nothing else reads it, and no
/// product is outstanding that read what was rounded before. So it takes half as many registers while the next
/// iteration's results are computed. Pre: slots are applied.
bool is_rounded_ahead(const ScheduledKernel& kernel, VariableId id);
/// Whether each warpgroup runs its own K blocks, where producer warps copy the tiles of all. Masks may leave a
/// warpgroup fewer K blocks than the CTA, as they tell rows apart. Or none of its rows is left in the last tile, which
/// rows of any number may come to.
bool have_own_k_blocks(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Fraction of the K blocks that the warpgroups of an output tile would run though none of their own rows needs them.
double fraction_of_skipped_blocks(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Warpgroups that may run in ping-pong, in the loop whose body begins with their products. There are none with fewer
/// than two warpgroups or more than four, or with fewer than two products. There are also none where products do not
/// all stand before what is computed on fragments, or where no such loop is.
struct PingPong {
    LoopId loop = {};
    StepId first = {}, last = {};
    std::int64_t groups = 0;
};
std::optional<PingPong> ping_pong(const ScheduledKernel& kernel);

}  // namespace napkin
