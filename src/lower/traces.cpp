// Traces of a kernel program: each warp walks the statements of its role.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "lower/prove.hpp"
#include "lower/race_events.hpp"
#include "lower/traces.hpp"
#include "schedule/fragments.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace {

/// Whose events a trace has, in which of the runs.
struct Agent {
    std::size_t warp = 0;   ///< in its CTA: a consumer warp, or `copying`
    std::size_t block = 0;  ///< the CTA, of a cluster or of a split tile
};
/// More than a run has of any loop, over all of its tiles.
constexpr std::int64_t most_iterations = 1 << 16;

bool has_barrier_inside(const Statement& statement) {
    return std::visit(
        [](const auto& s) {
            if constexpr (requires { s.has_barrier_inside; }) return s.has_barrier_inside;
            return false;
        },
        statement.kind);
}

/// Walks the statements of one role, for one warp.
class TraceOfRole {
public:
    TraceOfRole(const KernelProgram& program, const Accesses& touches, const Run& run, Agent agent, const Statement* without)
        : program_(program), kernel_(*program.kernel), touches_(touches), run_(run), agent_(agent), without_(without) {}

    Trace run() {
        walk(program_.entry);
        const Role& role = copies() ? *program_.producer : program_.consumer;
        walk(role.body);
        walk(role.end);
        if (kernel_.in_cluster() && !copies()) add(Event::leave);
        return std::move(out_);
    }

private:
    [[nodiscard]] bool copies() const { return agent_.warp == copying; }
    void add(Event::Kind kind, VariableId operand = -1, std::int64_t turn = 0) {
        out_.push_back({kind, operand, turn});
    }
    [[nodiscard]] std::int64_t number(const Iteration& i) const {
        const auto found = counters_.find(i.scope);
        return (found == counters_.end() ? 0 : found->second) + i.offset;
    }

    void walk(const Block& list) {
        for (const Statement& statement : list) {
            is_without_ = &statement == without_;
            if (is_without_ && synchronizes(statement) && !has_barrier_inside(statement)) continue;
            std::visit([&](const auto& kind) { walk(kind); }, statement.kind);
        }
    }
    // ---- loops

    void walk(const ForTiles& tiles) {
        // Stages of operands that are loaded once per tile come round, and so do those of the queue.
        std::int64_t count = tiles.order == TileOrder::queue ? queue_stages + 2 : 2;
        for (const Step* load : kernel_.on_tensor_cores() ? kernel_.operand_loads(0) : std::vector<const Step*>{})
            count = std::max<std::int64_t>(count, kernel_.place(kernel_.operand_loaded(*load)).stages + 1);
        for (std::int64_t t = 0; t < std::min(count, possible_groups(kernel_)); ++t, ++tile_) walk(tiles.body);
    }
    /// A loop that is not repeated has a single K block, which always runs.
    void walk(const LoopScope& scope) {
        const ScheduledLoop& loop = kernel_.loop(scope.loop);
        begin(scope.loop);
        if (!is_repeated(kernel_, loop)) end_[scope.loop] = number({loop.scope, 0}) + 1;
        walk(scope.body);
    }
    /// How the loop's K blocks part into those of others and the warpgroup's own.
    void begin(LoopId loop) {
        const std::int64_t all = run_.turns[at(loop)];
        own_[loop] = all, before_[loop] = after_[loop] = 0;
        end_[loop] = number({kernel_.loop(loop).scope, 0}) + all;
    }
    void walk(const Bounds& bounds) {
        if (!bounds.is_own) return begin(bounds.loop);
        const std::int64_t all = run_.turns[at(bounds.loop)], one = std::min<std::int64_t>(1, all);
        const bool may_be_before = has_blocks(bounds.loop, KBlocks::before_own);
        const bool is_idle = run_.idle != Idle::first || agent_.warp == 0;
        const bool has_both = run_.idle == Idle::one_block || run_.idle == Idle::half;
        const std::int64_t some = run_.idle == Idle::half ? all / 2 : one, others = has_both ? some : is_idle ? all : 0;
        own_[bounds.loop] = all - others;
        const bool are_before = run_.idle == Idle::both_before || (has_both && agent_.warp == 1);
        (may_be_before && are_before ? before_ : after_)[bounds.loop] = others;
    }
    [[nodiscard]] bool has_blocks(LoopId loop, KBlocks which) const {
        bool found = false;
        each_statement(program_.consumer.body, [&](const Statement& s) {
            const auto* blocks = std::get_if<ForBlocks>(&s.kind);
            found |= blocks && blocks->loop == loop && blocks->blocks == which;
        });
        return found;
    }
    void walk(const ForBlocks& blocks) {
        std::int64_t turns = own(blocks.loop);
        if (blocks.blocks == KBlocks::but_last) turns = std::max<std::int64_t>(0, turns - 1);
        if (blocks.blocks == KBlocks::before_own) turns = before_[blocks.loop];
        if (blocks.blocks == KBlocks::after_own) turns = after_[blocks.loop];
        const ScopeId scope = kernel_.loop(blocks.loop).scope;
        // Loops that copy no operands do not count their iterations themselves.
        const bool counts = kernel_.on_tensor_cores() && !kernel_.operand_loads(scope).empty();
        for (std::int64_t t = 0; t < turns; ++t) {
            walk(blocks.body);
            if (!counts) ++counters_[scope];
        }
    }
    /// K blocks that the warp runs. Loops without bounds and copies stand in no scope of their own.
    [[nodiscard]] std::int64_t own(LoopId loop) const {
        const auto found = own_.find(loop);
        return found == own_.end() ? run_.turns[at(loop)] : found->second;
    }
    void walk(const If& branch) {
        switch (branch.condition) {
            case If::any_k_block:
                if (own(branch.loop) > 0) walk(branch.body);
                return;
            // The first tile is one that two CTAs share: this one has the beginning or the end.
            case If::tile_is_split:
                is_claimed_ = false;
                if (tile_ == 0) walk(branch.body);
                return;
            case If::arrives_second:
                if (!is_claimed_) out_.push_back({Event::read_states});
                walk(agent_.block > 0 ? branch.body : branch.otherwise);
                return;
            case If::goes_on:
                if (tile_ > 0 || agent_.block > 0) walk(branch.body);
                return;
        }
    }
    void walk(const At& iteration) {
        at_offset_ = iteration.iteration.offset;
        walk(iteration.body);
        at_offset_ = 0;
    }
    void walk(const ForParts& parts) {
        const std::int64_t all = kernel_.column_parts->parts;
        for (std::int64_t part = 0; part < all; ++part) {
            is_last_part_ = part + 1 == all;
            walk(parts.body);
        }
    }
    void walk(const ForPanels& panels) { walk(panels.body); }
    void walk(const ForStaging& tiles) {
        touch(tiles.step);
        access(tiles.step, false);
        for (box_ = 0; box_ < touches_.steps[tiles.step].boxes; ++box_) walk(tiles.body);
    }
    void walk(const UseStage&) {}
    void walk(const Advance& advance) { ++counters_[advance.scope]; }

    // ---- copies

    void walk(const Copy& copy) {
        switch (copy.way) {
            case Copy::bulk:
                if (!copies() && agent_.warp != 0) return;
                return add(Event::fill, copy.tile.operand, number(copy.tile.iteration));
            case Copy::by_threads: return copy_by_threads(copy.tile.operand, number(copy.tile.iteration));
            case Copy::to_staging:
                return add(Event::write_staging, variable_of(kernel_.step(copy.step)), box_number(copy));
            case Copy::from_staging: return add(Event::send, variable_of(kernel_.step(copy.step)), box_number(copy));
            case Copy::leave_states: return add(Event::write_states);
            case Copy::load:
            case Copy::load_rows:
            case Copy::store: touch(copy.step); return access(copy.step, copy.has_barrier_inside && !is_without_);
        }
    }
    [[nodiscard]] std::int64_t box_number(const Copy& copy) const {
        return box_ % kernel_.place(variable_of(kernel_.step(copy.step))).staging_tiles;
    }
    void copy_by_threads(VariableId operand, std::int64_t turn) {
        add(Event::fill, operand, turn);
        own_copies_.emplace_back(operand, turn);
    }
    void walk(const CopyAhead& ahead) {
        const ScheduledLoop& loop = kernel_.loop(ahead.loop);
        const std::vector<const Step*> loads = kernel_.operand_loads(loop.scope);
        const std::int64_t now = number({loop.scope, 0}), end = end_.at(ahead.loop);
        const int later = kernel_.place(kernel_.operand_loaded(*loads.front())).stages - 1;
        const bool is_loop = is_repeated(kernel_, loop);
        const std::int64_t first = ahead.is_first ? now : now + later,
                           last = ahead.is_first && is_loop ? now + later : first + 1;
        for (std::int64_t turn = first; turn < last; ++turn)
            for (const Step* load : loads) {
                const VariableId v = kernel_.operand_loaded(*load);
                if (kernel_.has_bulk_copies() && agent_.warp == 0 && turn < end) add(Event::fill, v, turn);
                if (kernel_.has_bulk_copies()) continue;
                // A copy past the end counts, but copies nothing.
                turn < end ? copy_by_threads(v, turn) : void(own_copies_.emplace_back(VariableId(), turn));
            }
    }
    void walk(const PrefetchTiles&) {}
    void walk(const LoadFirstRows&) {}

    // ---- computation

    void walk(const Init& init) { touch(init.step), access(init.step, false); }
    void walk(const Mma& product) {
        touch(product.step), access(product.step, false);
        const StepAccesses& touched = touches_.steps[product.step];
        if (touched.runs_beside)
            out_.push_back({Event::begin, variable_of(kernel_.step(product.step)), -1, product.step});
        for (const VariableId v : touched.operands)
            add(touched.runs_beside ? Event::factor : Event::read, v, number(of_operand(v, product.iteration)));
    }
    void walk(const Map& map) {
        compute(map.step, map.has_barrier_inside && !is_without_);
        if (const StepId follower = kernel_.step(map.step).follower; follower >= 0) compute(follower, false);
    }
    void compute(StepId step, bool has_barrier_inside) {
        touch(step), access(step, has_barrier_inside);
        const Step& s = kernel_.step(step);
        for (const VariableId v : touches_.steps[step].operands)
            add(Event::read, v, number(of_operand(v, {s.scope, at_offset_})));
    }
    void walk(const Rescale& rescale) {
        for (const StepId s : kernel_.rescale->moving) compute(s, false);
        compute(kernel_.rescale->weights, false);
        compute(kernel_.rescale->sum, false);
        if (rescale.is_first) return;
        for (const StepId again : kernel_.rescale->again) {
            access(again, false);
            for (const Read* r : kernel_.step(again).reads)
                if (kernel_.is_operand(r->variable()))
                    add(Event::read, r->variable(), number(of_operand(r->variable(), rescale.iteration)));
        }
    }
    void walk(const SumRows&) {}
    void walk(const Round&) {}
    void walk(const FinishPipelined&) {}
    void walk(const MergeStates&) { add(Event::read_states); }

    /// An operand that is loaded outside of the loop has the iteration of its own scope.
    [[nodiscard]] Iteration of_operand(VariableId v, Iteration iteration) const {
        const ScopeId scope = kernel_.layout(v).scope;
        return scope == iteration.scope ? iteration : Iteration{scope, 0};
    }
    void touch(StepId step) {
        for (const VariableId v : touches_.steps[step].registers) add(Event::touch, v);
    }
    void access(StepId step, bool has_barrier_inside) {
        const StepAccesses& touched = touches_.steps[step];
        if (touched.first.empty() && touched.second.empty()) return;
        const Step& s = kernel_.step(step);
        const bool is_load = std::holds_alternative<Load>(*s.statement);
        // Warps that run the same statement for the same iteration access values of their own, whatever else they run.
        const std::int64_t iteration = number({s.scope, at_offset_}), num_steps = std::ssize(kernel_.steps),
                           same = 2 * ((tile_ * most_iterations + iteration) * num_steps + step);
        if (!touched.first.empty()) out_.push_back({Event::access, -1, same, step, false});
        if (touched.has_parts && has_barrier_inside && !is_load) add(Event::meet);
        // A tile inside of its array gets no zeros, and no barrier after them.
        const std::int64_t second = is_load && has_barrier_inside ? same : same + 1;
        if (!touched.second.empty()) out_.push_back({Event::access, -1, second, step, true});
    }

    // ---- synchronization

    void walk(const InitBarriers&) {
        if (agent_.warp == 0) add(Event::init_barriers);
    }
    void walk(const Wait& wait) {
        const auto& [operand, iteration] = wait.barrier.tile;
        switch (wait.barrier.kind) {
            case BarrierKind::full: return add(Event::await, operand, number(iteration));
            case BarrierKind::empty: return add(Event::refill, operand, number(iteration));
            case BarrierKind::tile_full: return add(Event::await_number, -1, tile_);
            case BarrierKind::tile_empty: return add(Event::refill_number, -1, tile_);
        }
    }
    void walk(const Arrive& arrive) {
        const auto& [operand, iteration] = arrive.barrier.tile;
        if (arrive.barrier.kind == BarrierKind::tile_full) return add(Event::signal_number, -1, tile_);
        if (arrive.barrier.kind == BarrierKind::tile_empty) return add(Event::free_number, -1, tile_);
        if (arrive.when == Arrive::no_k_block && own(arrive.loop) > 0) return;
        if (arrive.when == Arrive::last_part && !is_last_part_) return;
        if (arrive.if_deferred && !deferred_[operand]) return;
        add(Event::free, operand, number(iteration));
    }
    void walk(const Defer& defer) { deferred_[defer.operand] = defer.value; }
    /// Copies of a thread arrive in the order in which it asked for them.
    void walk(const WaitCopies& wait) {
        for (; std::ssize(own_copies_) > wait.outstanding; own_copies_.pop_front())
            if (own_copies_.front().first >= 0)
                add(Event::await, own_copies_.front().first, own_copies_.front().second);
    }
    void walk(const WaitProducts& wait) {
        if (wait.outstanding >= 0) add(Event::settle, -1, wait.outstanding);
    }
    void walk(const WaitStaging& wait) { add(Event::await_staging, -1, wait.outstanding); }
    void walk(const FenceProxy&) { add(Event::publish); }
    void walk(const FenceStores&) {}
    void walk(const Sync&) { add(Event::meet); }
    void walk(const CtaBarrier&) { add(Event::cta_barrier); }
    void walk(const ClusterBarrier&) { add(Event::cluster_barrier); }
    void walk(const NamedBarrier& barrier) {
        if (barrier.what == NamedBarrier::wait) return add(Event::wait_ping_pong);
        if (barrier.what == NamedBarrier::start && agent_.warp + 1 != num_computing) return;
        add(Event::pass_ping_pong, -1, static_cast<std::int64_t>((agent_.warp + 1) % num_computing));
    }
    void walk(const AskTile&) {}
    void walk(const WriteTile&) { add(Event::write_number, -1, tile_); }
    void walk(const ReadTile&) { add(Event::read_number, -1, tile_); }
    void walk(const ClaimStates&) { is_claimed_ = true; }
    void walk(const SignalStates&) { add(Event::signal_states); }
    void walk(const WaitStates&) { add(Event::await_states); }

    const KernelProgram& program_;
    const ScheduledKernel& kernel_;
    const Accesses& touches_;
    const Run& run_;
    Agent agent_;
    const Statement* without_;
    bool is_without_ = false, is_last_part_ = true, is_claimed_ = false;
    std::int64_t tile_ = 0, box_ = 0;
    int at_offset_ = 0;
    std::map<ScopeId, std::int64_t> counters_;
    std::map<LoopId, std::int64_t> own_, before_, after_, end_;  ///< K blocks of a loop, and the number behind its last
    std::map<VariableId, bool> deferred_;
    std::deque<std::pair<VariableId, std::int64_t>> own_copies_;  ///< outstanding; -1: one that copies nothing
    Trace out_;
};

/// Iteration counts of the loops in the runs that together find all that there is to find: by run, then by loop.
std::vector<std::vector<std::int64_t>> iterations_to_run(const ScheduledKernel& kernel) {
    int stages = 1;
    for (const Place& place : kernel.schedule.places) stages = std::max(stages, place.stages);
    std::vector<std::vector<std::int64_t>> choices;  // by loop
    for (const ScheduledLoop& l : kernel.loops) {
        const Iterations turns = possible_iterations(kernel, l);
        // Two iterations in a row show all that any iteration accesses. With stages, more are needed until stages come
        // round.
        const bool has_stages = kernel.on_tensor_cores() && (!kernel.operand_loads(l.scope).empty() || !l.prologue.empty());
        std::vector<std::int64_t>& of_loop = choices.emplace_back();
        for (const std::int64_t n :
             {std::int64_t{0}, std::int64_t{1}, std::min<std::int64_t>(has_stages ? 2 * stages + 2 : 2, turns.most)})
            if (n >= turns.least && n <= turns.most && (n != 1 || has_stages || turns.most == 1) && !contains(of_loop, n))
                of_loop.push_back(n);
        if (of_loop.empty()) of_loop.push_back(turns.most);
    }
    std::vector<std::vector<std::int64_t>> out;
    std::vector<std::size_t> chosen(choices.size(), 0);
    while (true) {
        std::vector<std::int64_t>& turns = out.emplace_back();
        for (std::size_t l = 0; l < choices.size(); ++l) turns.push_back(choices[l][chosen[l]]);
        std::size_t l = 0;
        while (l < chosen.size() && ++chosen[l] == choices[l].size()) chosen[l++] = 0;
        if (l == chosen.size()) return out;
    }
}

}  // namespace

std::vector<Run> runs_of(const ScheduledKernel& kernel) {
    std::vector<Run> out;
    const bool has_own = any_of(kernel.loops, [&](const ScheduledLoop& l) { return have_own_k_blocks(kernel, l); });
    for (const std::vector<std::int64_t>& turns : iterations_to_run(kernel)) {
        out.push_back({turns});
        for (const Idle idle : {Idle::half, Idle::first, Idle::both, Idle::both_before})
            if (has_own) out.push_back({turns, idle});
    }
    return out;
}

std::optional<Fault> fault_in(const KernelProgram& program, const Accesses& touches, const Run& run,
                              const Statement* without) {
    const ScheduledKernel& kernel = *program.kernel;
    const bool is_pair = (kernel.in_cluster() && kernel.producer_role()) || chosen_stream_k(kernel).has_value();
    std::vector<Trace> traces;
    for (std::size_t block = 0; block < (is_pair ? most_blocks : 1); ++block)
        for (std::size_t w = 0; w < (kernel.producer_role() || is_pair ? block_warps : num_computing); ++w)
            traces.push_back(w == copying && !kernel.producer_role()
                                 ? Trace{}
                                 : TraceOfRole(program, touches, run, {w, block}, without).run());
    return first_fault(kernel, touches, std::move(traces));
}

}  // namespace napkin::lower
