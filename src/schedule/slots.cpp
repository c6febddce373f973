// The order of a loop's statements by their slots, and what of a turn runs ahead of it.
#include <algorithm>

#include "schedule/scheduled.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

class Slots {
public:
    explicit Slots(ScheduledKernel& kernel) : kernel_(kernel) {}

    void run() {
        for (ScheduledLoop& loop : kernel_.loops) {
            const bool has_slots = std::any_of(loop.body.begin(), loop.body.end(), [&](const Node& node) {
                const int* s = std::get_if<int>(&node);
                return s && (slot(*s).ahead != 0 || slot(*s).position != 0);
            });
            const bool is_plain = std::all_of(loop.body.begin(), loop.body.end(),
                                              [](const Node& node) { return std::holds_alternative<int>(node); });
            if (has_slots && is_plain) order(loop);
        }
    }

private:
    [[nodiscard]] Slot slot(int step) const {
        const auto found = kernel_.schedule.slots.find(step);
        return found == kernel_.schedule.slots.end() ? Slot{} : found->second;
    }
    [[nodiscard]] bool is_operand_load(int step) const {
        const auto* load = std::get_if<Load>(kernel_.step(step).statement);
        return load && kernel_.is_operand(load->variable);
    }
    [[nodiscard]] bool reads(int step, VariableId v) const {
        const std::vector<const Read*>& all = kernel_.step(step).reads;
        return std::any_of(all.begin(), all.end(), [&](const Read* r) { return r->array == v; });
    }

    /// An operand is waited for where it is first read: before the first statement in order of those that run the furthest ahead.
    void order(ScheduledLoop& loop) {
        std::vector<int> steps, loads;
        for (const Node& node : loop.body) (is_operand_load(std::get<int>(node)) ? loads : steps).push_back(std::get<int>(node));
        std::stable_sort(steps.begin(), steps.end(), [&](int a, int b) { return slot(a).position < slot(b).position; });
        for (const int s : steps) kernel_.steps[at(s)].ahead = slot(s).ahead;
        std::vector<Node> body;
        for (const int s : steps) {
            for (const int load : loads) {
                const VariableId operand = std::get<Load>(*kernel_.step(load).statement).variable;
                int furthest = 0;
                for (const int other : steps)
                    if (reads(other, operand)) furthest = std::max(furthest, slot(other).ahead);
                const bool is_there = std::any_of(body.begin(), body.end(),
                                                  [&](const Node& node) { return std::get<int>(node) == load; });
                if (is_there || !reads(s, operand) || slot(s).ahead != furthest) continue;
                kernel_.steps[at(load)].ahead = furthest;
                body.emplace_back(load);
            }
            body.emplace_back(s);
        }
        for (const int load : loads)  // of operands that nothing reads
            if (std::none_of(body.begin(), body.end(), [&](const Node& node) { return std::get<int>(node) == load; }))
                body.emplace_back(load);
        loop.body = std::move(body);
        loop.prologue.clear(), loop.epilogue.clear();
        const bool is_ahead = std::any_of(loop.body.begin(), loop.body.end(),
                                          [&](const Node& node) { return kernel_.step(std::get<int>(node)).ahead > 0; });
        if (!is_ahead) return;
        for (const Node& node : loop.body)
            (kernel_.step(std::get<int>(node)).ahead > 0 ? loop.prologue : loop.epilogue).push_back(node);
    }

    ScheduledKernel& kernel_;
};

}  // namespace

void apply_slots(ScheduledKernel& kernel) { Slots(kernel).run(); }

}  // namespace napkin
