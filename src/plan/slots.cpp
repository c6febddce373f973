// The modulo schedule of loops. It takes the order in which a warpgroup alone is the fastest, by the simulator's
// clocks, and then the one with the fewest registers.
#include <limits>

#include "plan/complete.hpp"
#include "schedule/fragments.hpp"
#include "schedule/modulo_body.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Most beginnings of orders that are looked at for one candidate: a plan has some hundred candidates. The command
/// `napkin plan --prove` looks further.
constexpr std::int64_t limit_of_candidate = 4096;

}  // namespace

void choose_slots(ScheduledKernel& kernel, const Simulator* model) {
    if (!kernel.producer_role()) return;
    // Conditional rescaling has other clocks, and its statements are to stay in one iteration.
    ScheduledKernel in_order = kernel;
    choose_rescale(in_order);
    for (const ScheduledLoop& loop : in_order.loops) {
        // A loop that only adds products computes nothing that they could run ahead of. On one H200, ping-pong
        // warpgroups with two products in one loop take 2% longer where they are two, and 12% where they are four.
        if (only_adds_products(in_order, loop.scope)) continue;
        const IterationClocks clocks = model ? model->iteration_clocks(in_order, loop)
                                             : clocks_without_machine(in_order, loop);
        const auto found = modulo_body(in_order, loop, clocks);
        const auto* body = std::get_if<LoopBody>(&found);
        if (!body) continue;
        // Where the fastest order lacks registers, the candidate spills. The search over sizes then finds smaller
        // tiles.
        ModuloBody open = body->body;
        open.registers = std::numeric_limits<std::int64_t>::max();
        const ModuloSearch search = search_order(open, limit_of_candidate);
        for (const auto& [step, slot] : slots_of(*body, search.best.order))
            kernel.schedule.slots.try_emplace(step, slot);
    }
}

}  // namespace napkin
