#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lower/insert_barriers.hpp"
#include "lower/lower.hpp"
#include "lower/traces.hpp"
#include "schedule/scheduled.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// For each step: whether all warps wait for each other before it, and inside of it.
using Barriers = std::vector<std::pair<bool, bool>>;

/// All that decides the barriers of a kernel without tensor cores. That is the order of its steps, the memory regions
/// that they access, which of these overlap, and how often loops may iterate.
class WhatDecidesBarriers {
public:
    WhatDecidesBarriers(const ScheduledKernel& kernel, const Accesses& touches)
        : kernel_(kernel), accesses_of_steps_(touches) {}

    std::vector<std::int64_t> run() {
        constexpr std::size_t numbers_of_most = 512;  // estimated of examples
        out_.reserve(numbers_of_most);
        add(std::min<std::int64_t>(possible_groups(kernel_), 2)), add(kernel_.producer_role() != nullptr);
        list(kernel_.body);
        for (const ScheduledLoop& loop : kernel_.loops) {
            // Without tensor cores the race checker runs one iteration and the next one, which show all.
            const Iterations turns = possible_iterations(kernel_, loop);
            add(turns.least), add(std::min<std::int64_t>(turns.most, 2));
            for (const std::vector<Node>* nodes : {&loop.prologue, &loop.body, &loop.epilogue, &loop.skipped})
                list(*nodes);
        }
        for (const StepId s : kernel_.steps.ids()) {
            const StepAccesses& step = accesses_of_steps_.steps[s];
            const Step& own = kernel_.steps[s];
            add(std::holds_alternative<Load>(*own.statement)), add(step.has_parts);
            // What the kernel program has of the step, and where.
            add(own.follower), add(own.stays), add(own.atom >= 0 && kernel_.atom(own).follows);
            const VariableId v = variable_of(own);
            add(kernel_.is_view(v) && kernel_.facts(v).is_only_gathered);
            for (const std::vector<MemoryAccess>* part : {&step.first, &step.second}) {
                add(std::ssize(*part));
                for (const MemoryAccess& touch : *part) add(touch.area), add(touch.writes);
            }
        }
        for (const MemoryRegion& area : accesses_of_steps_.areas) {
            add(area.operand), add(std::ssize(area.meets));
            for (const int met : area.meets) add(met);
        }
        return std::move(out_);
    }

private:
    void add(std::int64_t value) { out_.push_back(value); }
    void list(const std::vector<Node>& nodes) {
        add(std::ssize(nodes));
        for (const Node& node : nodes) {
            add(static_cast<std::int64_t>(node.index()));
            if (const StepId* step = std::get_if<StepId>(&node)) add(*step);
            if (const auto* loop = std::get_if<LoopId>(&node)) add(*loop);
            if (const auto* run = std::get_if<FusedStatements>(&node)) {
                add(std::ssize(run->steps));
                for (const StepId step : run->steps) add(step);
            }
        }
    }

    const ScheduledKernel& kernel_;
    const Accesses& accesses_of_steps_;
    std::vector<std::int64_t> out_;
};

/// The barriers of recent candidates. A search looks at many candidates of a kernel that differ in sizes alone, and in
/// nothing that decides barriers.
class KnownBarriers {
public:
    std::optional<Barriers> find(const std::vector<std::int64_t>& decided_by) {
        const std::lock_guard lock(mutex_);
        const auto found = known_.find(decided_by);
        return found == known_.end() ? std::nullopt : std::optional(found->second);
    }
    void keep(std::vector<std::int64_t> decided_by, Barriers barriers) {
        constexpr std::size_t most = 1024;
        const std::lock_guard lock(mutex_);
        if (known_.size() >= most) known_.clear();
        known_.emplace(std::move(decided_by), std::move(barriers));
    }

private:
    std::mutex mutex_;
    std::map<std::vector<std::int64_t>, Barriers> known_;
};
KnownBarriers& known_barriers() {
    static KnownBarriers known;
    return known;
}

class BarrierInserter {
public:
    explicit BarrierInserter(ScheduledKernel& kernel) : kernel_(kernel), accesses_of_steps_(accesses_of(kernel)) {}

    void run() {
        for (Step& step : kernel_.steps) step.synchronizes = step.synchronizes_inside = false;
        order_operands();
        if (kernel_.on_tensor_cores()) return find();
        std::vector<std::int64_t> decided_by = WhatDecidesBarriers(kernel_, accesses_of_steps_).run();
        if (const auto known = known_barriers().find(decided_by)) {
            for (const StepId s : kernel_.steps.ids())
                std::tie(kernel_.steps[s].synchronizes, kernel_.steps[s].synchronizes_inside) = (*known)[at(s)];
            return;
        }
        find();
        Barriers barriers;
        for (const Step& step : kernel_.steps) barriers.emplace_back(step.synchronizes, step.synchronizes_inside);
        known_barriers().keep(std::move(decided_by), std::move(barriers));
    }

private:
    void find() {
        put_barriers();
        // A barrier that was found in a loop's second iteration may have made an earlier one redundant.
        for (Step& step : kernel_.steps)
            if (!kernel_.loads_operand(step)) try_without(step.synchronizes);
        if (kernel_.on_tensor_cores()) remove_redundant_barriers();
    }
    /// The first fault of the program as it stands. The run that found the last fault is tried first.
    std::optional<Fault> first_race() {
        const lower::KernelProgram program = lower::with_statements(kernel_);
        const std::vector<lower::Run> runs = lower::runs_of(kernel_);
        if (suspect_ < runs.size())
            if (auto fault = lower::fault_in(program, accesses_of_steps_, runs[suspect_])) return fault;
        for (std::size_t r = 0; r < runs.size(); ++r)
            if (auto fault = r == suspect_ ? std::nullopt : lower::fault_in(program, accesses_of_steps_, runs[r])) {
                suspect_ = r;
                return fault;
            }
        return std::nullopt;
    }
    [[nodiscard]] bool is_right() { return !first_race(); }
    void try_without(bool& flag) {
        if (!flag) return;
        flag = false;
        flag = !is_right();
    }
    /// Adds barriers where the race checker first finds one missing, until it finds none. The rules refuse
    /// what no barrier can order.
    void put_barriers() {
        while (const auto fault = first_race()) {
            if (fault->step < 0) return;
            Step& step = kernel_.steps[fault->step];
            bool& barrier = fault->inside ? step.synchronizes_inside : step.synchronizes;
            if (std::exchange(barrier, true)) return;
        }
    }
    /// Sets all barriers and waits that operands may need. remove_redundant_barriers then leaves only those without
    /// which something is out of order. No warp executes a bulk copy: a barrier of its own says that the copy is done.
    /// Without bulk copies each thread waits for its own copies, and all threads for each other. A producer waits until
    /// what it overwrites is free, and consumers release that after their last read (wait_for_products).
    void order_operands() {
        for (ScheduledLoop& loop : kernel_.loops) loop.synchronizes_before = loop.synchronizes = false;
        kernel_.waits_for_staging = false;
        kernel_.syncs_cluster_before = kernel_.syncs_cluster_after = kernel_.in_cluster();
        kernel_.syncs_cta_before = kernel_.on_tensor_cores();
        for (Step& step : kernel_.steps) {
            step.waits = step.acquires = kernel_.loads_operand(step);
            step.synchronizes_behind = false;
            step.acquires &= kernel_.producer_role() != nullptr;
            step.copies_behind = step.staging_behind = -1;
            const auto* store = std::get_if<Store>(step.statement);
            step.fences_proxy = store && kernel_.is_staged_out(store->variable);
            if (step.fences_proxy) step.staging_behind = kernel_.place(store->variable).staging_tiles - 1;
            kernel_.waits_for_staging |= step.fences_proxy;
            if (!step.waits) continue;
            if (kernel_.producer_role()) continue;
            const auto loop = find_if(kernel_.loops, [&](const ScheduledLoop& l) { return l.scope == step.scope; });
            if (step.scope == 0) step.synchronizes = true;
            if (loop != kernel_.loops.end()) loop->synchronizes_before = loop->synchronizes = true;
            if (kernel_.has_bulk_copies()) continue;
            step.copies_behind = copies_behind(step, loop == kernel_.loops.end() ? nullptr : &*loop);
            step.waits = step.synchronizes_behind = step.copies_behind >= 0;
        }
        wait_for_products(kernel_);
    }
    void remove_redundant_barriers() {
        for (ScheduledLoop& loop : kernel_.loops) try_without(loop.synchronizes_before);
        for (Step& step : kernel_.steps)
            if (kernel_.loads_operand(step)) try_without(step.synchronizes);
        for (ScheduledLoop& loop : kernel_.loops) try_without(loop.synchronizes);
        for (Step& step : kernel_.steps) try_without(step.waits), try_without(step.synchronizes_behind);
        // A staging tile that is written once needs no wait.
        for (Step& step : kernel_.steps) {
            const int behind = std::exchange(step.staging_behind, -1);
            if (behind >= 0 && !is_right()) step.staging_behind = behind;
        }
        // What is copied once overwrites nothing, and needs no acquire.
        for (Step& step : kernel_.steps) {
            if (!step.acquires) continue;
            step.acquires = false;
            wait_for_products(kernel_);
            if (is_right()) continue;
            step.acquires = true;
            wait_for_products(kernel_);
        }
        remove_redundant_releases(kernel_.body);
        for (ScheduledLoop& loop : kernel_.loops)
            for (std::vector<Node>* list : {&loop.prologue, &loop.body, &loop.epilogue, &loop.skipped})
                remove_redundant_releases(*list);
        try_without(kernel_.syncs_cluster_before), try_without(kernel_.syncs_cluster_after);
        try_without(kernel_.syncs_cta_before);
    }
    /// Removes the releases of tiles after which no other tile comes into their stage.
    void remove_redundant_releases(std::vector<Node>& list) {
        for (Node& node : list) {
            auto* settle = std::get_if<WaitGroup>(&node);
            for (std::size_t f = 0; settle && f < settle->frees.size();) {
                // The next tile's first iteration would make a deferred release, too. Made behind the loop, it lets
                // the producer copy while results are stored. So it goes only where nobody needs either.
                settle->frees[f].is_left_out = true;
                if (is_right()) {
                    settle->frees.erase(settle->frees.begin() + static_cast<std::ptrdiff_t>(f));
                    continue;
                }
                settle->frees[f].is_left_out = false;
                ++f;
            }
            // A wait for nothing but what was released after it.
            const int pending = settle ? std::exchange(settle->pending, -1) : -1;
            if (pending >= 0 && !is_right()) settle->pending = pending;
        }
        std::erase_if(list, [](const Node& node) {
            const auto* settle = std::get_if<WaitGroup>(&node);
            return settle && settle->pending < 0 && settle->frees.empty();
        });
    }
    /// A loop copies all of its operands in order, ahead by one iteration fewer than there are stages. A thread's
    /// copies are done in the order in which it issued them, so the last of several loads in a row waits for all.
    [[nodiscard]] int copies_behind(const Step& step, const ScheduledLoop* loop) const {
        if (!loop) return 0;
        const auto is_beside = [&](const Step& other) {
            return other.scope == step.scope && kernel_.loads_operand(other);
        };
        const auto here = kernel_.steps.begin() + (&step - kernel_.steps.data());
        if (here + 1 != kernel_.steps.end() && is_beside(*(here + 1))) return -1;
        const auto all = count_if(kernel_.steps, is_beside),
                   later = std::count_if(here + 1, kernel_.steps.end(), is_beside);
        const int ahead = is_repeated(kernel_, *loop) ? kernel_.place(std::get<Load>(*step.statement).variable).stages - 1
                                                      : 0;
        return static_cast<int>(later + ahead * all);
    }

    ScheduledKernel& kernel_;
    const Accesses accesses_of_steps_;
    std::size_t suspect_ = 0;  ///< the run that found the last fault
};

}  // namespace

void insert_barriers(ScheduledKernel& kernel) {
    if (kernel.in_blocks()) BarrierInserter(kernel).run();
}

}  // namespace napkin
