// The synchronisation of the warps that run a group together. A barrier stands before a step that meets, in the arena or in an array in
// memory, what other warps have written or read since the last barrier.
#include <algorithm>
#include <utility>

#include "schedule/clocks.hpp"
#include "schedule/scheduled.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// A range of the arena in values, or an array in memory.
struct Touched {
    bool writes = false;
    ArrayId array = -1;  ///< -1: the arena
    std::int64_t begin = 0, end = 0;
    [[nodiscard]] bool meets(const Touched& other) const {
        if (!(writes || other.writes) || array != other.array) return false;
        return array >= 0 || (begin < other.end && other.begin < end);
    }
};

template <class F>
void visit_reads(const Expr& e, F f) {
    visit(e, [&](const Expr& node) {
        if (const Read* r = as<Read>(node)) f(*r);
    });
}

class Synchronization {
public:
    explicit Synchronization(ScheduledKernel& kernel) : kernel_(kernel) {}

    void run() {
        for (Step& step : kernel_.steps) {
            const auto* load = std::get_if<Load>(step.statement);
            step.synchronizes = false;
            // Zeros first, then what lies inside of the array: by other threads.
            step.synchronizes_inside = load && is_cut(kernel_, kernel_.variable(load->variable));
            // All warps have left what they found before one of them makes the result of it.
            step.synchronizes_inside |= kernel_.partials(step) > 0;
        }
        order_operands();
        adds_ = true;
        while (!is_right()) continue;
        // A barrier that was found in a loop's second turn may have made one needless that was found before.
        adds_ = false;
        for (Step& step : kernel_.steps) {
            if (!step.synchronizes || kernel_.loads_operand(step)) continue;
            step.synchronizes = false;
            step.synchronizes = !is_right();
        }
        if (kernel_.on_matrix_unit()) take_out_needless();
    }

private:
    /// Bulk copies of operands are done by none of the warps: a barrier of its own says that a copy is done; without them every thread waits
    /// for its own copies, and all for each other. A role that asks for copies waits until what it overwrites is free, and those that compute
    /// say so after their last read (settle_products). These are all barriers and waits that there may be; take_out_needless leaves those
    /// without which something is out of order.
    void order_operands() {
        for (ScheduledLoop& loop : kernel_.loops) loop.synchronizes_before = loop.synchronizes = false;
        kernel_.waits_for_boxes = false;
        for (Step& step : kernel_.steps) {
            step.waits = step.refills = kernel_.loads_operand(step);
            step.refills &= kernel_.copying_role() != nullptr;
            step.copies_behind = step.boxes_behind = -1;
            const auto* store = std::get_if<Store>(step.statement);
            step.publishes = store && kernel_.is_boxed(store->variable);
            if (step.publishes) step.boxes_behind = kernel_.place(store->variable).boxes - 1;
            kernel_.waits_for_boxes |= step.publishes;
            if (!step.waits) continue;
            if (kernel_.copying_role()) continue;
            const auto loop = std::find_if(kernel_.loops.begin(), kernel_.loops.end(),
                                           [&](const ScheduledLoop& l) { return l.scope == step.scope; });
            if (step.scope == 0) step.synchronizes = true;
            if (loop != kernel_.loops.end()) loop->synchronizes_before = loop->synchronizes = true;
            if (kernel_.has_bulk_copies()) continue;
            step.copies_behind = copies_behind(step, loop == kernel_.loops.end() ? nullptr : &*loop);
            step.waits = step.copies_behind >= 0;
        }
        settle_products(kernel_);
    }
    void take_out_needless() {
        const auto try_without = [&](bool& flag) {
            if (!flag) return;
            flag = false;
            flag = !operands_out_of_order(kernel_).empty() || !is_right();
        };
        for (ScheduledLoop& loop : kernel_.loops) try_without(loop.synchronizes_before);
        for (Step& step : kernel_.steps)
            if (kernel_.loads_operand(step)) try_without(step.synchronizes);
        for (ScheduledLoop& loop : kernel_.loops) try_without(loop.synchronizes);
        for (Step& step : kernel_.steps) try_without(step.waits);
        // A box that is written once.
        for (Step& step : kernel_.steps) {
            const int behind = std::exchange(step.boxes_behind, -1);
            if (behind >= 0 && !operands_out_of_order(kernel_).empty()) step.boxes_behind = behind;
        }
        // What is copied once is overwritten by nothing.
        for (Step& step : kernel_.steps) {
            if (!step.refills) continue;
            step.refills = false;
            settle_products(kernel_);
            if (operands_out_of_order(kernel_).empty()) continue;
            step.refills = true;
            settle_products(kernel_);
        }
        take_out_needless_frees(kernel_.body);
        for (ScheduledLoop& loop : kernel_.loops)
            for (std::vector<Node>* list : {&loop.prologue, &loop.body, &loop.epilogue}) take_out_needless_frees(*list);
    }
    /// Of a tile after which no other one comes into its stage.
    void take_out_needless_frees(std::vector<Node>& list) {
        for (Node& node : list) {
            auto* settle = std::get_if<Settle>(&node);
            for (std::size_t f = 0; settle && f < settle->frees.size();) {
                const Freed freed = settle->frees[f];
                settle->frees.erase(settle->frees.begin() + static_cast<std::ptrdiff_t>(f));
                if (operands_out_of_order(kernel_).empty()) continue;
                settle->frees.insert(settle->frees.begin() + static_cast<std::ptrdiff_t>(f), freed);
                ++f;
            }
            // A wait for nothing but what was freed after it.
            const int pending = settle ? std::exchange(settle->pending, -1) : -1;
            if (pending >= 0 && !operands_out_of_order(kernel_).empty()) settle->pending = pending;
        }
        std::erase_if(list, [](const Node& node) {
            const auto* settle = std::get_if<Settle>(&node);
            return settle && settle->pending < 0 && settle->frees.empty();
        });
    }
    /// A loop copies all of its operands in their order, so many turns ahead as there are stages but one. A thread's copies are done in the
    /// order in which it asked for them: of loads that follow each other the last one waits for all.
    [[nodiscard]] int copies_behind(const Step& step, const ScheduledLoop* loop) const {
        if (!loop) return 0;
        const auto is_beside = [&](const Step& other) { return other.scope == step.scope && kernel_.loads_operand(other); };
        const auto here = kernel_.steps.begin() + (&step - kernel_.steps.data());
        if (here + 1 != kernel_.steps.end() && is_beside(*(here + 1))) return -1;
        const auto all = std::count_if(kernel_.steps.begin(), kernel_.steps.end(), is_beside),
                   later = std::count_if(here + 1, kernel_.steps.end(), is_beside);
        const int ahead = is_repeated(kernel_, *loop) ? kernel_.place(std::get<Load>(*step.statement).variable).stages - 1
                                                      : 0;
        return static_cast<int>(later + ahead * all);
    }

    /// Whether nothing meets what is open, from the first group to the next. A barrier is put before what does, where it may be.
    bool is_right() {
        open_.clear();
        meets_ = false;
        repeat({1, kernel_.num_groups()}, [&] { walk(kernel_.body); });
        return !meets_;
    }

    void in_arena(std::vector<Touched>& out, VariableId v, bool writes) const {
        const Layout& l = kernel_.layout(v);
        if (kernel_.is_held(v) && !kernel_.is_operand(v))
            out.push_back({writes, -1, l.offset, l.offset + l.count * kernel_.cell_values(kernel_.is_whole(v))});
    }
    void read(std::vector<Touched>& out, VariableId v) const {
        in_arena(out, v, false);
        if (kernel_.is_view(v)) out.push_back({false, kernel_.variable(v).array, 0, 0});
    }

    void in_partials(std::vector<Touched>& out, const Step& step, bool writes) const {
        out.push_back({writes, -1, kernel_.partials_offset, kernel_.partials_offset + kernel_.partials(step)});
    }
    /// Of a reduction that warps share: before the barrier inside, and after it.
    [[nodiscard]] std::vector<Touched> touched_by_shares(const Step& step) const {
        std::vector<Touched> out;
        in_partials(out, step, true);
        visit_reads(std::get<Compute>(*step.statement).body, [&](const Read& r) { read(out, r.array); });
        return out;
    }
    [[nodiscard]] std::vector<Touched> touched_by_result(const Step& step) const {
        const auto& compute = std::get<Compute>(*step.statement);
        std::vector<Touched> out;
        in_partials(out, step, false);
        in_arena(out, compute.variable, true);
        if (compute.carry) visit_reads(compute.carry, [&](const Read& r) { read(out, r.array); });
        return out;
    }

    [[nodiscard]] std::vector<Touched> touched(const Step& step) const {
        if (kernel_.partials(step) > 0) return touched_by_shares(step);
        std::vector<Touched> out;
        if (const auto* load = std::get_if<Load>(step.statement); load && !step.stays) {
            const Variable& v = kernel_.variable(load->variable);
            in_arena(out, load->variable, true);
            out.push_back({false, v.array, 0, 0});
            for (const Index& index : v.gathers)
                for (const VariableId read_by : read_arrays(index.value())) {
                    in_arena(out, read_by, false);
                    out.push_back({false, kernel_.variable(read_by).array, 0, 0});
                }
        }
        // What is written where it goes is stored by the statement that computes it.
        if (const auto* store = std::get_if<Store>(step.statement); store && !kernel_.is_view(store->variable)) {
            in_arena(out, store->variable, false);
            // A thread stores what it has in registers where no other one does.
            if (!kernel_.is_in_registers(store->variable))
                out.push_back({true, kernel_.variable(store->variable).array, 0, 0});
        }
        if (const auto* init = std::get_if<Init>(step.statement)) in_arena(out, init->variable, true);
        if (const auto* compute = std::get_if<Compute>(step.statement)) {
            in_arena(out, compute->variable, true);
            if (kernel_.is_view(compute->variable))
                out.push_back({true, kernel_.variable(compute->variable).array, 0, 0});
            for (const Read* r : step.reads) read(out, r->array);
        }
        return out;
    }

    void visit(Step& step) {
        const std::vector<Touched> now = touched(step);
        const bool meets = std::any_of(now.begin(), now.end(), [&](const Touched& a) {
            return std::any_of(open_.begin(), open_.end(), [&](const Touched& b) { return a.meets(b); });
        });
        if (meets && !step.synchronizes) step.synchronizes = adds_, meets_ = true;
        if (step.synchronizes) open_.clear();
        open_.insert(open_.end(), now.begin(), now.end());
        if (kernel_.partials(step) > 0) open_ = touched_by_result(step);
    }

    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const int* s = std::get_if<int>(&node)) visit(kernel_.steps[at(*s)]);
            if (const auto* run = std::get_if<Run>(&node))
                for (const int s : run->steps) visit(kernel_.steps[at(s)]);
            if (const auto* loop = std::get_if<LoopRef>(&node)) turn(kernel_.loop(*loop));
        }
    }
    void turn(const ScheduledLoop& loop) {
        if (loop.synchronizes_before) open_.clear();
        walk(loop.prologue);
        repeat(turns_of(kernel_, loop), [&] {
            if (loop.synchronizes) open_.clear();
            walk(loop.body);
        });
        walk(loop.epilogue);
    }
    /// What a turn leaves open meets the next one.
    template <class F>
    void repeat(const Turns& turns, F body) {
        const std::vector<Touched> before = open_;
        body();
        if (turns.most > 1) body();
        if (turns.least == 0) open_.insert(open_.end(), before.begin(), before.end());
    }

    ScheduledKernel& kernel_;
    std::vector<Touched> open_;  ///< since the last barrier
    bool adds_ = false, meets_ = false;
};

}  // namespace

Turns turns_of(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    const std::int64_t extent = kernel.extent(loop.loop->axis), tile = kernel.span(loop.loop->axis, loop.scope).tile;
    return {loop.loop->support.empty() ? 1 : 0, (extent + tile - 1) / tile};
}

bool is_repeated(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    const AxisId axis = loop.loop->axis;
    const bool in_part = !loop.loop->is_sub && kernel.kernel->parts.cut(axis);
    return !loop.loop->support.empty() || kernel.span(axis, loop.scope).begins || in_part;
}

void synchronize(ScheduledKernel& kernel) {
    if (kernel.in_blocks()) Synchronization(kernel).run();
}

}  // namespace napkin
