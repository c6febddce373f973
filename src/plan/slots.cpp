// The default modulo schedule of a loop with products that depend on each other: those that depend on none run a turn ahead, so that what is
// made of them is computed while the matrix unit is at the others.
#include <algorithm>

#include "plan/complete.hpp"
#include "schedule/ones_column.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

class TurnsAhead {
public:
    TurnsAhead(const ScheduledKernel& kernel, const ScheduledLoop& loop) : kernel_(kernel) {
        for (const Node& node : loop.body)
            if (const int* s = std::get_if<int>(&node); s && std::holds_alternative<Compute>(*kernel.step(*s).statement))
                steps_.push_back(*s);
    }

    /// None where no product depends on another.
    [[nodiscard]] std::map<int, Slot> slots() const {
        std::vector<int> last;  // products that depend on others, and what is made of those
        std::map<int, Slot> out;
        for (const int s : steps_) {
            const bool follows = std::any_of(last.begin(), last.end(), [&](int other) { return depends(s, other); });
            const bool needs_product = is_product(s) && std::any_of(steps_.begin(), steps_.end(), [&](int other) {
                                           return other < s && is_product(other) && depends_somehow(s, other);
                                       });
            if (follows || needs_product) last.push_back(s);
        }
        if (last.empty()) return {};
        for (const int s : steps_)
            out[s] = contains(last, product_of(s)) ? Slot{-1, 1, 0}
                     : is_product(product_of(s))   ? Slot{-1, 0, 1}
                                                   : Slot{-1, 2, 1};
        return out;
    }

private:
    [[nodiscard]] bool is_product(int s) const { return runs_beside(kernel_, kernel_.step(s)); }
    [[nodiscard]] bool depends(int s, int on) const {
        return on < s && reads(kernel_.step(s), variable_of(kernel_.step(on)));
    }
    /// A sum that is a column of a product runs with it; any other step is itself.
    [[nodiscard]] int product_of(int s) const {
        if (kernel_.atom(kernel_.step(s)).kind != AtomKind::column) return s;
        const auto product = product_beside(kernel_, kernel_.step(s));
        return std::holds_alternative<int>(product) ? std::get<int>(product) : s;
    }
    /// Through statements between them.
    [[nodiscard]] bool depends_somehow(int s, int on) const {
        return depends(s, on) || std::any_of(steps_.begin(), steps_.end(), [&](int between) {
                   return between < s && between > on && depends(s, between) && depends_somehow(between, on);
               });
    }

    const ScheduledKernel& kernel_;
    std::vector<int> steps_;
};

}  // namespace

void choose_slots(ScheduledKernel& kernel) {
    if (!kernel.copying_role()) return;
    for (const ScheduledLoop& loop : kernel.loops) {
        if (!is_repeated(kernel, loop)) continue;
        for (const auto& [step, slot] : TurnsAhead(kernel, loop).slots()) kernel.schedule.slots.try_emplace(step, slot);
    }
}

}  // namespace napkin
