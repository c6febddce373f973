// The agents of the interpreter: each walks the statements of its role, and stops where it has to wait.
#include "lower/interpret.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "lower/interpret_state.hpp"
#include "lower/interpret_tiles.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace interpreter {
namespace {

/// A list of statements that is under way, with what it belongs to.
struct Frame {
    const Block* block = nullptr;
    const Statement* owner = nullptr;  ///< null: the list of a role
    std::size_t next = 0;
    std::int64_t pass = 0, passes = 1;  ///< of a loop with a number of them
    std::optional<Tile> before = {};    ///< where the scope of an At stood
};

/// What an agent is at, and the statements by which agents wait for each other. A statement returns whether it is done;
/// one that has to wait is executed again later.
class Synchronization {
public:
    Synchronization(Grid& grid, Cta& cta, std::int64_t number, bool is_producer)
        : warp_(grid, cta, number, is_producer), grid_(grid), kernel_(grid.kernel), tiles_(warp_) {}
    Synchronization(const Synchronization&) = delete;
    Synchronization& operator=(const Synchronization&) = delete;

    [[nodiscard]] std::string where() const {
        return fmt::format("{} {} of CTA {} at '{}'", warp_.is_producer ? "producer" : "warp", warp_.number,
                           warp_.cta.number, now_ ? to_string(grid_.program, *now_) : "");
    }

protected:
    [[nodiscard]] AxisId axis_of(LoopId loop) const { return kernel_.loop(loop).loop->axis; }
    [[nodiscard]] std::int64_t tile_of(LoopId loop) const {
        return kernel_.span(axis_of(loop), kernel_.loop(loop).scope).tile;
    }
    /// The scope of the loop stands at a value of its axis.
    void stand(LoopId loop, std::int64_t from) {
        const ScheduledLoop& node = kernel_.loop(loop);
        Tile& tile = warp_.at[at(node.scope)];
        tile = warp_.at[at(node.outer_scope)];
        tile.cut(node.loop->axis, from, tile_of(loop), kernel_.extent(node.loop->axis));
    }
    BlockRange& range(LoopId loop) { return tiles_.range(loop); }

    [[nodiscard]] bool has_blocks(LoopId loop) {
        const BlockRange& r = range(loop);
        return (r.has_own ? r.at : r.begin) < r.end;
    }
    // ---- synchronization
    // ------------------------------------------------------------

    /// All warps meet, once each has called `before`.
    template <class F>
    bool meet(Meeting& meeting, std::int64_t needed, const F& before) {
        if (!waits_for_) {
            before();
            waits_for_ = meeting.arrive(needed);
        }
        if (meeting.generation == *waits_for_) return false;
        waits_for_.reset();
        return true;
    }
    /// The second part runs once all consumer warps have done the first one, where there is a barrier between them.
    template <class First, class Second>
    bool in_two_parts(bool has_barrier, const First& first, const Second& second) {
        if (!has_barrier) first();
        if (has_barrier && !meet(warp_.cta.consumers, warp_.warps(), first)) return false;
        second();
        return true;
    }
    bool step(const Sync&) {
        return meet(warp_.cta.consumers, warp_.warps(), [] {});
    }
    bool step(const CtaBarrier&) {
        return meet(warp_.cta.all, warp_.warps() + (grid_.program.producer ? 1 : 0), [] {});
    }
    /// The cluster's barrier is the one of its first CTA. A producer that has ended is not waited for.
    bool step(const ClusterBarrier&) {
        const auto ctas = std::ssize(warp_.cta.cluster);
        const std::int64_t needed = ctas * (warp_.warps() + (is_in_entry_ && grid_.program.producer ? 1 : 0));
        return meet(warp_.cta.cluster.front()->cluster_barrier, needed, [] {});
    }
    /// A warpgroup waits with all of its warps, and as many warps of another one pass it the tensor cores.
    bool step(const NamedBarrier& barrier) {
        const std::int64_t together = kernel_.unit.matrix.warps_together(), groups = warp_.warps() / together,
                           own = warp_.warpgroup();
        std::vector<Meeting>& of = warp_.cta.ping_pong;
        if (barrier.what == NamedBarrier::wait) return meet(of[static_cast<std::size_t>(own)], 2 * together, [] {});
        if (barrier.what == NamedBarrier::pass || own == groups - 1)
            of[static_cast<std::size_t>((own + 1) % groups)].arrive(2 * together);
        return true;
    }

    bool step(const InitBarriers&) {
        if (!warp_.is_producer && warp_.number == 0) tiles_.make_barriers();
        return true;
    }
    std::pair<MemoryBarrier*, std::int64_t> barrier_of(const BarrierRef& barrier) {
        const bool is_empty = barrier.kind == BarrierKind::empty || barrier.kind == BarrierKind::tile_empty;
        if (barrier.kind == BarrierKind::tile_full || barrier.kind == BarrierKind::tile_empty) {
            Cta::QueueStage& stage = tiles_.queue_stage();
            return {is_empty ? &stage.empty : &stage.full, (warp_.queue_iteration / queue_stages + (is_empty ? 1 : 0)) % 2};
        }
        const auto& [operand, iteration] = barrier.tile;
        auto& of = is_empty ? warp_.cta.empty[operand] : warp_.cta.full[operand];
        return {&of[static_cast<std::size_t>(warp_.stage_of(iteration))],
                (warp_.parity_of(iteration) + (is_empty ? 1 : 0)) % 2};
    }
    bool step(const Wait& wait) {
        const auto [barrier, parity] = barrier_of(wait.barrier);
        if (!barrier->is_made) throw Stop{"bad-access", "a barrier is waited for before it is made: " + where()};
        if (!barrier->has_passed(parity)) tiles_.complete_copies(*barrier);
        return barrier->has_passed(parity);
    }
    bool step(const Arrive& arrive) {
        const VariableId operand = arrive.barrier.tile.operand;
        if (arrive.when == Arrive::no_k_block && has_blocks(arrive.loop)) return true;
        if (arrive.when == Arrive::last_part && warp_.part + 1 != kernel_.column_parts->parts) return true;
        if (arrive.if_deferred && !warp_.deferred[operand]) return true;
        if (operand < 0 || !grid_.fact(operand).part) {
            barrier_of(arrive.barrier).first->arrive();
            return true;
        }
        const auto stage = static_cast<std::size_t>(warp_.stage_of(arrive.barrier.tile.iteration));
        for (Cta* cta : warp_.cta.cluster) {
            if (cta->has_ended()) throw Stop{"bad-access", "a stage is released to a CTA that has ended: " + where()};
            cta->empty[operand][stage].arrive();
        }
        return true;
    }
    bool step(const Defer& defer) {
        warp_.deferred[defer.operand] = defer.value;
        return true;
    }
    bool step(const WaitCopies& wait) {
        complete_own_copies(warp_, wait.outstanding);
        return true;
    }
    bool step(const WaitProducts& wait) {
        if (wait.outstanding >= 0) complete_products(warp_, wait.outstanding);
        return true;
    }
    bool step(const WaitStaging& wait) {
        complete_stores(warp_, wait.outstanding);
        return true;
    }
    bool step(const FenceProxy&) {
        warp_.unfenced.clear();
        return true;
    }
    bool step(const FenceStores&) { return true; }

    bool step(const AskTile& ask) {
        const BlockRange* r = ask.is_with_last_copies ? &range(ask.loop) : nullptr;
        tiles_.ask(r ? r->x + tile_of(ask.loop) >= r->end : !tiles_.has_asked());
        if (!r) tiles_.forget_asking();
        return true;
    }
    bool step(const WriteTile&) {
        tiles_.write_number();
        return true;
    }
    bool step(const ReadTile&) {
        tiles_.read_number();
        return true;
    }
    bool step(const ClaimStates&) {
        std::int64_t& word = grid_.words[pair_of(warp_)];
        tiles_.goes_on = word++ != 0;
        return true;
    }
    bool step(const SignalStates&) {
        grid_.words[pair_of(warp_)] += 2;
        return true;
    }
    bool step(const WaitStates&) {
        std::int64_t& word = grid_.words[pair_of(warp_)];
        if (word != 4) return false;
        word = 0;
        return true;
    }

    Warp warp_;
    Grid& grid_;
    const ScheduledKernel& kernel_;
    Tiles tiles_;
    bool is_in_entry_ = true;  ///< the roles have not parted yet
    const Statement* now_ = nullptr;
    std::optional<std::int64_t> waits_for_;  ///< the generation of a barrier at which the agent has arrived
};

/// Statements that copy and compute.
class Work : protected Synchronization {
protected:
    using Synchronization::step;
    using Synchronization::Synchronization;

    // ---- copies
    // ------------------------------------------------------------

    bool step(const Copy& copy) {
        const VariableId operand = copy.tile.operand;
        switch (copy.way) {
            case Copy::bulk:
                if (warp_.is_producer || warp_.number == 0)
                    copy_operand(warp_, operand, kernel_.step(copy.step).scope, warp_.stage_of(copy.tile.iteration),
                                 warp_.at[at(kernel_.step(copy.step).scope)]);
                return true;
            case Copy::by_threads:
                copy_own_part(warp_, operand, kernel_.step(copy.step).scope, warp_.stage_of(copy.tile.iteration),
                              &warp_.at[at(kernel_.step(copy.step).scope)]);
                return true;
            case Copy::load:
                return in_two_parts(
                    copy.has_barrier_inside, [&] { clear_tile(warp_, kernel_.step(copy.step)); },
                    [&] { load_tile(warp_, kernel_.step(copy.step)); });
            case Copy::load_rows: load_rows(warp_, kernel_.step(copy.step)); return true;
            case Copy::store: store_tile(warp_, kernel_.step(copy.step)); return true;
            case Copy::to_staging: write_staging(warp_, kernel_.step(copy.step)); return true;
            case Copy::from_staging: send_staging(warp_, kernel_.step(copy.step)); return true;
            // A late warp lets the other one come first, if anybody can.
            case Copy::leave_states:
                if (grid_.is_late && !grid_.is_stuck && grid_.words[pair_of(warp_)] < 2) return false;
                leave_states(warp_);
                return true;
        }
        return true;
    }
    /// Without bulk copies, a copy past the end counts, but copies nothing.
    bool step(const CopyAhead& ahead) {
        const ScheduledLoop& loop = kernel_.loop(ahead.loop);
        const bool by_one = kernel_.has_bulk_copies();
        if (by_one && warp_.number != 0) return true;
        const std::int64_t stages = grid_.stages(loop.scope), now = warp_.stage_of({loop.scope, 0});
        BlockRange& r = range(ahead.loop);
        const auto fill = [&](std::int64_t stage) {
            stand(ahead.loop, std::min(r.next, kernel_.extent(axis_of(ahead.loop)) - 1));
            const Tile there = warp_.at[at(loop.scope)];
            for (const Step* load : kernel_.operand_loads(loop.scope)) {
                if (by_one)
                    copy_operand(warp_, kernel_.operand_loaded(*load), loop.scope, stage, there);
                else
                    copy_own_part(warp_, kernel_.operand_loaded(*load), loop.scope, stage,
                                  r.next < r.end ? &there : nullptr);
            }
        };
        const auto fill_next = [&](std::int64_t stage) {
            const Tile before = warp_.at[at(loop.scope)];
            if (!by_one || r.next < r.end) fill(stage % stages);
            warp_.at[at(loop.scope)] = before;
            r.next += tile_of(ahead.loop);
        };
        if (!ahead.is_first) {
            fill_next(now + stages - 1);
        } else {
            r.next = r.begin;
            if (!is_repeated(kernel_, loop))
                fill(now);
            else
                for (std::int64_t t = 0; t < stages - 1; ++t)
                    if (!by_one || r.next < r.end) fill_next(now + t);
        }
        return true;
    }
    bool step(const PrefetchTiles&) { return true; }
    bool step(const LoadFirstRows& load) {
        const BlockRange& r = range(load.loop);
        load_first_rows(warp_, kernel_.step(load.step), r.has_own ? r.at : r.begin);
        return true;
    }

    // ---- computation
    // ------------------------------------------------------------

    bool step(const Init& init) {
        run_init(warp_, init);
        return true;
    }
    bool step(const Mma& product) {
        run_product(warp_, product);
        return true;
    }
    bool step(const Map& map) {
        if (kernel_.atom(kernel_.step(map.step)).kind != AtomKind::block) {
            run_fragment(warp_, map.step);
            return true;
        }
        return in_two_parts(
            map.has_barrier_inside, [&] { run_block(warp_, map.step); }, [&] { finish_block(warp_, map.step); });
    }
    bool step(const Rescale& rescale) {
        run_rescale(warp_, rescale);
        return true;
    }
    bool step(const SumRows& sums) {
        sum_rows(warp_, sums.scope);
        return true;
    }
    bool step(const Round& round) {
        round_ahead(warp_, round);
        return true;
    }
    bool step(const FinishPipelined&) { unsupported("a statement of the last tile behind all others"); }
    bool step(const MergeStates&) {
        merge_states(warp_);
        return true;
    }
};

/// One warp, or the producer's thread, on its way through the statements of its role.
class Agent : Work {
public:
    using Synchronization::where;
    Agent(Grid& grid, Cta& cta, std::int64_t number, bool is_producer) : Work(grid, cta, number, is_producer) {
        const Role& role = is_producer ? *grid.program.producer : grid.program.consumer;
        lists_ = {&grid.program.entry, &role.body, &role.end};
    }

    [[nodiscard]] bool has_ended() const { return list_ == lists_.size(); }

    /// Goes on as far as it can. Returns whether it got anywhere.
    bool run() {
        bool went_on = false;
        while (!has_ended()) {
            if (frames_.empty()) {
                open(*lists_[list_], nullptr);
                went_on = true;
            }
            Frame& frame = frames_.back();
            if (frame.next == frame.block->size()) {
                if (!again(frame)) close();
                went_on = true;
                continue;
            }
            const Statement& statement = (*frame.block)[frame.next];
            now_ = &statement;
            if (!execute(statement)) return went_on;
            went_on = true;
            // Whoever waits for a late warp goes on before it does.
            if (grid_.is_late && std::holds_alternative<Arrive>(statement.kind)) return true;
        }
        return went_on;
    }

private:
    using Work::step;

    bool execute(const Statement& statement) {
        owner_ = &statement;
        const std::size_t depth = frames_.size();
        const bool is_done = std::visit([&](const auto& s) { return step(s); }, statement.kind);
        if (is_done) ++frames_[depth - 1].next;
        return is_done;
    }
    void open(const Block& block, const Statement* owner, std::int64_t passes = 1) {
        frames_.push_back({&block, owner, 0, 0, passes, {}});
    }
    void close() {
        frames_.pop_back();
        if (!frames_.empty()) return;
        ++list_, is_in_entry_ = false;
        if (has_ended() && !warp_.is_producer) --warp_.cta.running_consumers;
    }

    // ---- loops
    // ------------------------------------------------------------

    /// The list runs once more.
    bool again(Frame& frame) {
        if (!frame.owner) return false;
        const auto& kind = frame.owner->kind;
        if (const auto* tiles = std::get_if<ForTiles>(&kind)) {
            if (!tiles_.next(tiles->order)) return false;
        } else if (const auto* blocks = std::get_if<ForBlocks>(&kind)) {
            if (!next_block(*blocks)) return false;
        } else if (const auto* at = std::get_if<At>(&kind)) {
            warp_.at[napkin::at(kernel_.loop(at->loop).scope)] = *frame.before;
            return false;
        } else if (++frame.pass == frame.passes) {
            return false;
        } else if (std::holds_alternative<ForParts>(kind)) {
            warp_.part = frame.pass;
        } else if (std::holds_alternative<ForStaging>(kind)) {
            warp_.staging_tile = frame.pass;
        }
        frame.next = 0;
        return true;
    }

    bool step(const ForTiles& tiles) {
        if (tiles_.first(tiles.order)) open(tiles.body, owner_);
        return true;
    }
    /// A loop that is not repeated has a single K block, which always runs.
    bool step(const LoopScope& scope) {
        stand(scope.loop, 0);
        tiles_.forget(scope.loop);
        open(scope.body, owner_);
        return true;
    }
    bool step(const Bounds& bounds) {
        bounds.is_own ? tiles_.own_bounds(bounds.loop) : tiles_.bounds(bounds.loop);
        return true;
    }
    /// The value of the axis from which the loop goes on.
    std::int64_t& place_in(const ForBlocks& blocks) {
        BlockRange& r = range(blocks.loop);
        if (blocks.blocks == KBlocks::but_last) return r.iteration;
        return blocks.blocks == KBlocks::all ? r.x : r.at;
    }
    bool runs(const ForBlocks& blocks) {
        const BlockRange& r = range(blocks.loop);
        const std::int64_t x = place_in(blocks);
        switch (blocks.blocks) {
            case KBlocks::all: return x < r.end;
            case KBlocks::but_last: return x + tile_of(blocks.loop) < r.end;
            case KBlocks::before_own: return x < r.own_first && x < r.all_end;
            case KBlocks::after_own: break;
        }
        return x < r.all_end;
    }
    bool step(const ForBlocks& blocks) {
        BlockRange& r = range(blocks.loop);
        const std::int64_t tile = tile_of(blocks.loop);
        if (blocks.blocks == KBlocks::all) r.x = r.has_own ? r.at : r.begin;
        if (blocks.blocks == KBlocks::after_own && r.at < r.own_last) r.at += round_up(r.own_last - r.at, tile);
        if (!runs(blocks)) return true;
        stand(blocks.loop, place_in(blocks));
        open(blocks.body, owner_);
        return true;
    }
    bool next_block(const ForBlocks& blocks) {
        place_in(blocks) += tile_of(blocks.loop);
        if (!runs(blocks)) return false;
        stand(blocks.loop, place_in(blocks));
        return true;
    }
    bool step(const If& branch) {
        bool holds = false;
        switch (branch.condition) {
            case If::any_k_block:
                holds = has_blocks(branch.loop);
                if (BlockRange& r = range(branch.loop); holds) r.iteration = r.has_own ? r.at : r.begin;
                break;
            case If::tile_is_split: tiles_.goes_on = true, holds = tiles_.is_split(); break;
            case If::arrives_second:
            case If::goes_on: holds = tiles_.goes_on; break;
        }
        open(holds ? branch.body : branch.otherwise, owner_);
        return true;
    }
    bool step(const At& at) {
        const ScheduledLoop& loop = kernel_.loop(at.loop);
        const Tile before = warp_.at[napkin::at(loop.scope)];
        stand(at.loop, range(at.loop).iteration + at.iteration.offset * tile_of(at.loop));
        for (const Step* load : kernel_.operand_loads(loop.scope))
            warp_.stage[kernel_.operand_loaded(*load)] = warp_.stage_of(at.iteration);
        open(at.body, owner_);
        frames_.back().before = before;
        return true;
    }
    bool step(const ForParts& parts) {
        warp_.part = 0;
        open(parts.body, owner_, kernel_.column_parts->parts);
        return true;
    }
    bool step(const ForPanels&) { unsupported("statements that run panel by panel"); }
    bool step(const ForStaging& tiles) {
        warp_.staging_tile = 0;
        open(tiles.body, owner_, grid_.fact(variable_of(kernel_.step(tiles.step))).staging->count);
        return true;
    }
    bool step(const UseStage& use) {
        warp_.stage[use.tile.operand] = warp_.stage_of(use.tile.iteration);
        return true;
    }
    bool step(const Advance& advance) {
        ++warp_.counters[advance.scope];
        return true;
    }

    std::vector<const Block*> lists_;
    std::size_t list_ = 0;
    std::vector<Frame> frames_;
    const Statement* owner_ = nullptr;
};

/// CTAs that run beside each other, from `first` on.
void run_together(Grid& grid, std::int64_t first, std::int64_t count) {
    const ScheduledKernel& kernel = grid.kernel;
    const std::int64_t of_cluster = kernel.cluster_blocks();
    std::vector<std::unique_ptr<Cta>> ctas;
    std::vector<std::unique_ptr<Agent>> agents;
    for (std::int64_t c = first; c < first + count; ++c)
        ctas.push_back(std::make_unique<Cta>(c, c % of_cluster, kernel.arena_bytes()));
    for (const auto& cta : ctas) {
        prepare(grid, *cta);
        for (std::int64_t rank = 0; rank < of_cluster; ++rank)
            cta->cluster.push_back(ctas[static_cast<std::size_t>(cta->number - first - cta->rank + rank)].get());
        cta->running_consumers = kernel.schedule.warps.value;
        for (std::int64_t w = 0; w < kernel.schedule.warps.value; ++w)
            agents.push_back(std::make_unique<Agent>(grid, *cta, w, false));
        if (grid.program.producer) agents.push_back(std::make_unique<Agent>(grid, *cta, 0, true));
    }
    if (grid.is_late) std::reverse(agents.begin(), agents.end());
    while (any_of(agents, [](const auto& a) { return !a->has_ended(); })) {
        bool went_on = false;
        for (const auto& agent : agents) went_on |= agent->run();
        if (went_on || !std::exchange(grid.is_stuck, true)) {
            if (went_on) grid.is_stuck = false;
            continue;
        }
        std::string who;
        for (const auto& agent : agents)
            if (!agent->has_ended()) who += (who.empty() ? "" : "; ") + agent->where();
        throw Stop{"deadlock", "warps wait for each other: " + who};
    }
}

}  // namespace
}  // namespace interpreter

Result<Movement> interpret(const KernelProgram& program, Values& memory, Completion completion) {
    const ScheduledKernel& kernel = *program.kernel;
    const auto error = [&](const std::string& code, const std::string& what) {
        return Diagnostic{.code = code, .message = fmt::format("kernel {}: {}", kernel.kernel->name, what)};
    };
    if (!kernel.in_blocks()) return error("unsupported", "it has no CTAs, which the interpreter runs");
    const Diagram& diagram = kernel.program->diagram;
    memory.resize(diagram.arrays.size());
    for (const ArrayId a : kernel.outputs)
        if (!contains(kernel.inputs, a) || memory[a].empty())
            memory[a] = Column::unset(diagram.array(a).type,
                                      static_cast<std::size_t>(count_values(diagram, a, kernel.extents)));
    try {
        interpreter::Grid grid(program, memory, completion);
        const std::int64_t blocks = kernel.num_blocks();
        const bool all_together = kernel.is_dynamic() || grid.stream_k;
        const std::int64_t together = all_together ? blocks : kernel.cluster_blocks();
        for (std::int64_t n = 0; n < blocks; n += together) {
            const std::int64_t first = grid.is_late ? blocks - together - n : n;
            interpreter::run_together(grid, first, together);
        }
        return grid.moved;
    } catch (const interpreter::Stop& stop) {
        return error(stop.code, stop.what);
    }
}

}  // namespace napkin::lower
