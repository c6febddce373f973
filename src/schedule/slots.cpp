// The order of a loop's statements by their slots, and which of an iteration's statements run ahead of it.
#include <fmt/format.h>

#include <utility>

#include "schedule/legality.hpp"
#include "schedule/scheduled.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

class Slots {
public:
    explicit Slots(ScheduledKernel& kernel) : kernel_(kernel) {}

    void run() {
        for (ScheduledLoop& loop : kernel_.loops) {
            const bool has_slots = any_of(loop.body, [&](const Node& node) {
                const StepId* s = std::get_if<StepId>(&node);
                return s && (slot(*s).stage_offset != 0 || slot(*s).order != 0);
            });
            const bool is_plain = all_of(loop.body, [](const Node& node) { return std::holds_alternative<StepId>(node); });
            if (has_slots && is_plain) order(loop);
        }
    }

private:
    [[nodiscard]] Slot slot(StepId step) const { return value_or(kernel_.schedule.slots, step, Slot{}); }

    /// The consumer wait for an operand stands where the operand is first read. That is before the first statement, in
    /// order, of those readers that run furthest ahead.
    void order(ScheduledLoop& loop) {
        std::vector<StepId> steps, loads;
        for (const Node& node : loop.body)
            (kernel_.loads_operand(kernel_.step(std::get<StepId>(node))) ? loads : steps).push_back(std::get<StepId>(node));
        stable_sort(steps, [&](StepId a, StepId b) { return slot(a).order < slot(b).order; });
        for (const StepId s : steps) kernel_.steps[s].ahead = slot(s).stage_offset;
        std::vector<Node> body;
        for (const StepId s : steps) {
            for (const StepId load : loads) {
                const VariableId operand = kernel_.operand_loaded(kernel_.step(load));
                int furthest = 0;
                for (const StepId other : steps)
                    if (reads(kernel_.step(other), operand)) furthest = std::max(furthest, slot(other).stage_offset);
                const bool is_there = any_of(body, [&](const Node& node) { return std::get<StepId>(node) == load; });
                if (is_there || !reads(kernel_.step(s), operand) || slot(s).stage_offset != furthest) continue;
                kernel_.steps[load].ahead = furthest;
                body.emplace_back(load);
            }
            body.emplace_back(s);
        }
        for (const StepId load : loads)  // loads of operands that nothing reads
            if (none_of(body, [&](const Node& node) { return std::get<StepId>(node) == load; }))
                body.emplace_back(load);
        loop.body = std::move(body);
        loop.prologue.clear(), loop.epilogue.clear(), loop.skipped.clear();
        const bool is_ahead = any_of(loop.body,
                                     [&](const Node& node) { return kernel_.step(std::get<StepId>(node)).ahead > 0; });
        if (!is_ahead) return;
        for (const Node& node : loop.body)
            (kernel_.step(std::get<StepId>(node)).ahead > 0 ? loop.prologue : loop.epilogue).push_back(node);
    }

    ScheduledKernel& kernel_;
};

/// The statements of a loop in the order of the program, and when each runs: the distance of its iteration from the
/// loop's, then its place in the body.
class SlotRules {
public:
    SlotRules(const ScheduledKernel& kernel, const ScheduledLoop& loop) : kernel_(kernel) {
        for (std::size_t n = 0; n < loop.body.size(); ++n)
            if (const StepId* s = std::get_if<StepId>(&loop.body[n])) steps_.emplace_back(*s, n);
        sort(steps_);
    }

    std::vector<std::string> run() const {
        std::vector<std::string> out;
        for (std::size_t a = 0; a < steps_.size(); ++a) {
            if (kernel_.step(steps_[a].first).ahead > 1)
                out.push_back(fmt::format("{} runs {} turns ahead, and a value waits for one turn at most",
                                          name(steps_[a].first), kernel_.step(steps_[a].first).ahead));
            for (std::size_t b = a + 1; b < steps_.size(); ++b) {
                const StepId first = steps_[a].first, then = steps_[b].first;
                if (meet(first, then) && !(when(a, 0) < when(b, 0)))
                    out.push_back(fmt::format("{} runs before {}, which it comes after", name(then), name(first)));
                else if (meet(then, first) && !(when(b, 0) < when(a, 1)))
                    out.push_back(
                        fmt::format("{} runs for the next turn before {} runs for this one", name(first), name(then)));
            }
        }
        return out;
    }

private:
    [[nodiscard]] std::pair<int, std::size_t> when(std::size_t s, int turn) const {
        return {turn - kernel_.step(steps_[s].first).ahead, steps_[s].second};
    }
    [[nodiscard]] const std::string& name(StepId step) const {
        return kernel_.variable(variable_of(kernel_.step(step))).name;
    }
    [[nodiscard]] bool meet(StepId a, StepId b) const {
        return must_keep_order(kernel_, kernel_.step(a), kernel_.step(b));
    }

    const ScheduledKernel& kernel_;
    std::vector<std::pair<StepId, std::size_t>> steps_;
};

}  // namespace

std::vector<std::string> slot_faults(const ScheduledKernel& kernel) {
    std::vector<std::string> out;
    for (const auto& [step, slot] : kernel.schedule.slots) {
        const auto loop = find_if(kernel.loops, [&, s = step](const ScheduledLoop& l) {
            return any_of(l.body, [&](const Node& node) {
                const StepId* found = std::get_if<StepId>(&node);
                return found && *found == s;
            });
        });
        if ((slot.stage_offset != 0 || slot.order != 0) && loop == kernel.loops.end())
            out.push_back("a slot with a position is of a statement in a loop, and there is none around this one");
    }
    for (const ScheduledLoop& loop : kernel.loops)
        if (any_of(loop.body, [](const Node& n) { return std::holds_alternative<StepId>(n); }))
            for (std::string& fault : SlotRules(kernel, loop).run()) out.push_back(std::move(fault));
    return out;
}

bool runs_ahead(const ScheduledKernel& kernel) {
    return any_of(kernel.loops, [](const ScheduledLoop& l) { return !l.prologue.empty(); });
}

void apply_slots(ScheduledKernel& kernel) { Slots(kernel).run(); }

}  // namespace napkin
