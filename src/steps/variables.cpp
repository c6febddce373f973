#include <fmt/format.h>

#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

class Lives {
public:
    Lives(const StepContext& context, const StepChoices& choices, const Assigned& assigned)
        : context_(context), choices_(choices), assigned_(assigned), lives_(assigned.kernel.variables.size()) {}

    std::vector<VariableLife> run() {
        for (std::size_t v = 0; v < lives_.size(); ++v) lives_[v] = {VariableId::of(v), -1, -1, -1, {}};
        walk(assigned_.kernel.body);
        find_recomputed();
        std::vector<VariableLife*> order;
        for (VariableLife& life : lives_)
            if (life.first >= 0) order.push_back(&life);
        stable_sort(order, [](const auto* a, const auto* b) { return a->first < b->first; });
        for (VariableLife* life : order)
            if (life->recomputed.empty()) take_slot(*life);
        return mapped<VariableLife>(order, [&](const VariableLife* life) { return *life; });
    }

private:
    [[nodiscard]] const Variable& variable(VariableId v) const { return assigned_.kernel.variables[v]; }
    [[nodiscard]] const AssignedVariable& where(VariableId v) const { return assigned_.variables[v]; }

    /// Positions of statements; the end of a life stands where its Free does.
    void walk(const std::vector<TileStatement>& list) {
        for (const TileStatement& s : list) {
            if (const auto* free = std::get_if<Free>(&s)) {
                lives_[at(free->variable)].last = position_;
                continue;
            }
            ++position_;
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                walk((*loop)->body);
                continue;
            }
            const auto* load = std::get_if<Load>(&s);
            const auto* init = std::get_if<Init>(&s);
            const auto* compute = std::get_if<Compute>(&s);
            if (compute) writers_[position_] = compute;
            if (!load && !init && !compute) continue;
            VariableLife& life = lives_[at(load ? load->variable : init ? init->variable : compute->variable)];
            if (life.first < 0) life.first = position_;
        }
    }

    /// A choice or comparison of one other value of the row, which lives on: computed again wherever it is read.
    void find_recomputed() {
        std::map<VariableId, std::vector<int>> written;
        for (const auto& [position, compute] : writers_) written[compute->variable].push_back(position);
        for (const auto& [position, compute] : writers_) {
            const VariableId id = compute->variable;
            if (compute->reduce || compute->carry || written[id].size() != 1 || where(id).at != HeldAt::threads)
                continue;
            const std::vector<CutSize> size = context_.cuts_of(assigned_, id, choices_);
            const auto is_of_rows = [](const CutSize& cut) { return cut.letter == 't' || cut.letter == 'g'; };
            if (is_shared(context_, variable(id)) || !all_of(size, is_of_rows)) continue;
            std::set<VariableId> read;
            bool cheap = true;
            visit(compute->body, [&](const Expr& e) {
                if (const auto* r = as<Read>(e))
                    read.insert(r->variable()), cheap = cheap && r->indices == variable(id).dims;
                if (as<Unary>(e) || as<Cast>(e)) cheap = false;
                if (const auto* b = as<Binary>(e)) cheap = cheap && is_comparison(b->op);
            });
            if (!cheap || read.size() != 1 || !as<Select>(compute->body)) continue;
            const VariableId of = *read.begin();
            const int last = lives_[at(id)].last;
            const bool stays = lives_[at(of)].last >= last &&
                               none_of(written[of], [&, from = position](int p) { return from < p && p <= last; });
            if (stays)
                lives_[at(id)].recomputed = fmt::format(
                    "a choice by {} alone, which lives on: it is made again wherever it is read", variable(of).name);
        }
    }

    /// The statement that makes `made` reads `given` at the same points alone, for the last time.
    [[nodiscard]] bool in_place(const VariableLife& given, const VariableLife& made) const {
        const auto writer = writers_.find(made.first);
        if (given.last != made.first || writer == writers_.end() || writer->second->reduce) return false;
        const Compute& c = *writer->second;
        const std::vector<const Read*> reads = reads_in_order(c.body, c.carry);
        return all_of(reads, [&](const Read* r) {
            return r->variable() != given.variable || r->indices == variable(made.variable).dims;
        });
    }

    void take_slot(VariableLife& life) {
        const std::vector<CutSize> size = context_.cuts_of(assigned_, life.variable, choices_);
        const AssignedVariable& place = where(life.variable);
        for (Slot& slot : slots_) {
            const AssignedVariable& first = where(slot.lives.front()->variable);
            if (slot.size != size || first.at != place.at || bytes(first.type) < bytes(place.type) ||
                first.stages > 1 || place.stages > 1)
                continue;
            const bool is_free = all_of(slot.lives, [&](const VariableLife* other) {
                return other->last < life.first || in_place(*other, life);
            });
            if (!is_free) continue;
            life.slot = slot.lives.front()->slot;
            slot.lives.push_back(&life);
            return;
        }
        life.slot = static_cast<int>(slots_.size());
        slots_.push_back({size, {&life}});
    }

    struct Slot {
        std::vector<CutSize> size;
        std::vector<const VariableLife*> lives;
    };
    const StepContext& context_;
    const StepChoices& choices_;
    const Assigned& assigned_;
    std::vector<VariableLife> lives_;
    std::map<int, const Compute*> writers_;
    std::vector<Slot> slots_;
    int position_ = 0;
};

}  // namespace

std::vector<VariableLife> variable_lives(const StepContext& context, const StepChoices& choices, const Assigned& assigned) {
    return Lives(context, choices, assigned).run();
}

}  // namespace napkin
