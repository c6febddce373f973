#pragma once
// A loop of a scheduled kernel as the data of modulo.hpp: its statements as operations, their dependences, and what
// registers hold.
#include <optional>
#include <string>
#include <variant>

#include "schedule/iteration_clocks.hpp"
#include "schedule/modulo.hpp"
#include "schedule/scheduled.hpp"

namespace napkin {

struct LoopBody {
    ModuloBody body;
    std::vector<StepId> steps;  ///< of the kernel, by operation
};

/// The loop's data, or why its statements have only one order. No producer role copies for them, or the loop is not
/// repeated. Or it has more than statements that a warpgroup runs on its own values. With conditional rescaling, what
/// moves the maximum runs in one iteration. Pre: atoms and places are chosen.
std::variant<LoopBody, std::string> modulo_body(const ScheduledKernel& kernel, const ScheduledLoop& loop,
                                                const IterationClocks& clocks);

/// The order of the loop's statements in the kernel. Pre: slots are applied.
ModuloOrder order_of(const ScheduledKernel& kernel, const ScheduledLoop& loop, const LoopBody& body);
/// The slots that give this order: neighbours that stay in the order of the program share a position. Empty where the
/// order is the program's and nothing runs ahead.
std::map<StepId, Slot> slots_of(const LoopBody& body, const ModuloOrder& order);

/// One clock for each product, and for each other statement: where no machine says how long they take.
IterationClocks clocks_without_machine(const ScheduledKernel& kernel, const ScheduledLoop& loop);

}  // namespace napkin
