#pragma once
// A loop of a scheduled kernel as the data of modulo.hpp: its statements as operations, who waits for whom, and what
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

/// Or why the statements of the loop have one order: no role copies for them, it is not repeated, or something in it is
/// no statement that a warpgroup runs on its own values. Where a maximum may lag, what moves it runs in one turn. Pre:
/// atoms and places are chosen.
std::variant<LoopBody, std::string> modulo_body(const ScheduledKernel& kernel, const ScheduledLoop& loop,
                                                const IterationClocks& clocks);

/// In which the loop's statements stand in the kernel. Pre: slots are applied.
ModuloOrder order_of(const ScheduledKernel& kernel, const ScheduledLoop& loop, const LoopBody& body);
/// Slots by which they would stand so: neighbours that stay in the order of the program share a position. None where
/// all run in turn, as they stand.
std::map<StepId, Slot> slots_of(const LoopBody& body, const ModuloOrder& order);

/// One clock for each statement's own part and its product: where no machine says how long they take.
IterationClocks clocks_without_machine(const ScheduledKernel& kernel, const ScheduledLoop& loop);

}  // namespace napkin
