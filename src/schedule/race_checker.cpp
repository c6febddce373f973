#include "schedule/race_checker.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

#include "schedule/cluster.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// In a CTA two consumer warps, and one producer warp where there is a producer role. In a cluster those of two CTAs.
constexpr std::size_t num_computing = 2, copying = num_computing, block_warps = num_computing + 1, most_blocks = 2,
                      num_warps = most_blocks * block_warps;
constexpr std::size_t block_of(std::size_t warp) { return warp / block_warps; }
/// The first consumer warp of a warp's CTA; the others follow it.
constexpr std::size_t first_of_block(std::size_t warp) { return block_of(warp) * block_warps; }
/// How many steps of each warp are known to be done.
using Clock = std::array<int, num_warps>;

void take_in(Clock& a, const Clock& b) {
    for (std::size_t w = 0; w < num_warps; ++w) a[w] = std::max(a[w], b[w]);
}

/// What a warp does that others have to know.
struct Event {
    enum Kind : std::uint8_t {
        meet,   ///< waits at the barrier of all consumer warps
        fill,   ///< asks for the copy of an iteration's tile, or for its own part of it
        await,  ///< waits until that copy has arrived
        read,
        begin,            ///< issues a product, which reads and computes beside the warp
        factor,           ///< that product reads the tile
        settle,           ///< waits until at most so many products are in flight
        touch,            ///< reads or writes registers of the variable
        free,             ///< releases the tile
        await_staging,    ///< waits until at most so many of its staging tiles are being read
        write_box,        ///< writes the staging tile of this number
        publish,          ///< proxy fence: bulk copies see what it has written to staging tiles
        send,             ///< asks for the copy of the staging tile to global memory
        refill,           ///< producer acquire: waits until all warps have released the tile that is copied over
        access,           ///< accesses what its step shares with other warps
        init,             ///< makes the barriers of its CTA
        cluster_barrier,  ///< waits for all warps of the cluster that have not ended
        leave,            ///< ends, and its CTA's memory ends with the last consumer warp
    };
    Kind kind = meet;
    VariableId operand = -1;
    /// For an access: its number among those of its warp. Accesses of the same number do not conflict.
    std::int64_t turn = 0;
    StepId step = {};        ///< of an access
    bool is_second = false;  ///< of an access: it follows the barrier inside the step
};
using Trace = std::vector<Event>;

/// Writes the trace of one warp through all CTA tiles.
class TraceWriter {
public:
    TraceWriter(const ScheduledKernel& kernel, const Accesses& touches, const std::vector<std::int64_t>& turns,
                std::size_t warp)
        : kernel_(kernel), accesses_of_steps_(touches), turns_(turns), warp_(warp) {}

    Trace run() {
        if (kernel_.in_cluster() && warp_ == 0) add(Event::init);
        if (kernel_.syncs_cluster_before) add(Event::cluster_barrier);
        std::int64_t groups = 2;
        for (const Step* load : kernel_.on_tensor_cores() ? kernel_.operand_loads(0) : std::vector<const Step*>{})
            groups = std::max<std::int64_t>(groups, kernel_.place(kernel_.operand_loaded(*load)).stages + 1);
        for (std::int64_t group = 0; group < std::min(groups, kernel_.num_groups()); ++group) {
            walk(kernel_.body);
            ++group_iteration_;
        }
        if (kernel_.waits_for_staging && !copies()) add(Event::await_staging);
        if (kernel_.syncs_cluster_after) add(Event::cluster_barrier);
        if (kernel_.in_cluster() && !copies()) add(Event::leave);
        return std::move(out_);
    }

private:
    [[nodiscard]] bool copies() const { return warp_ == copying; }
    /// One thread asks for a bulk copy. Without bulk copies every warp copies its own part.
    [[nodiscard]] bool fills() const {
        return kernel_.producer_role() ? copies() : !kernel_.has_bulk_copies() || warp_ == 0;
    }
    void add(Event::Kind kind, VariableId operand = -1, std::int64_t turn = 0) {
        out_.push_back({kind, operand, turn});
    }
    void meet() {
        if (!copies()) add(Event::meet);
    }

    [[nodiscard]] std::int64_t iteration_of(VariableId id, int ahead) const {
        const int scope = kernel_.layout(id).scope;
        const auto found = loop_iterations_.find(scope);
        return scope == 0 || found == loop_iterations_.end() ? group_iteration_ : found->second + ahead;
    }
    void fill(const Step& load, std::int64_t turn) {
        if (!fills()) return;
        const VariableId id = kernel_.operand_loaded(load);
        if (load.acquires && copies()) add(Event::refill, id, turn);
        add(Event::fill, id, turn);
    }
    /// Waits for a copy. A bulk copy has a barrier of its own. Copies by threads complete in order. So a wait covers
    /// all operands of the scope up to this one, and then all warps wait for each other.
    void await(const Step& s) {
        const auto await_copy = [&](const Step& load) {
            const VariableId id = kernel_.operand_loaded(load);
            add(Event::await, id, iteration_of(id, s.ahead));
        };
        if (kernel_.has_bulk_copies()) return await_copy(s);
        for (const Step* before : kernel_.operand_loads(s.scope)) {
            await_copy(*before);
            if (before == &s) break;
        }
        meet();
    }
    void settle(const WaitGroup& node) {
        if (copies()) return;
        if (node.pending >= 0) add(Event::settle, -1, node.pending);
        for (const Release& freed : node.frees) {
            const std::int64_t turn = iteration_of(freed.operand, freed.ahead);
            // The iteration before the first one has no tile.
            const auto first = first_iterations_.find(kernel_.layout(freed.operand).scope);
            if (freed.ahead >= 0 || (first != first_iterations_.end() && turn >= first->second))
                add(Event::free, freed.operand, turn);
        }
    }
    void store_staged(const Step& s, std::int64_t boxes) {
        const VariableId id = variable_of(s);
        for (std::int64_t box = 0; box < boxes; ++box) {
            const std::int64_t number = box % kernel_.place(id).boxes;
            if (s.staging_behind >= 0) add(Event::await_staging, -1, s.staging_behind);
            add(Event::write_box, id, number);
            if (s.fences_proxy) add(Event::publish, id);
            add(Event::send, id, number);
        }
    }

    /// What the step accesses and other warps share, and its barrier inside. A tile that lies inside its array gets no
    /// zeros, and no barrier after them. So that barrier is left out: it orders only what is copied over the zeros.
    void access(const Step& s) {
        const auto number = static_cast<std::size_t>(&s - kernel_.steps.data());
        const StepAccesses& touches = accesses_of_steps_.steps[number];
        const bool is_load = std::holds_alternative<Load>(*s.statement);
        const auto access_part = [&](bool is_second) {
            out_.push_back({Event::access, -1, accesses_, kernel_.number(s), is_second});
        };
        if (!touches.first.empty()) access_part(false);
        if (touches.has_parts && s.synchronizes_inside && !is_load) meet();
        if (!(is_load && s.synchronizes_inside)) ++accesses_;
        if (!touches.second.empty()) access_part(true);
        ++accesses_;
    }

    void step(const Step& s) {
        if (s.synchronizes) meet();
        if (!kernel_.on_tensor_cores()) return access(s);
        const bool is_operand = kernel_.loads_operand(s);
        if (is_operand && s.scope == 0) fill(s, group_iteration_);
        if (copies()) return;
        if (is_operand && s.waits) await(s);
        const StepAccesses& touches = accesses_of_steps_.steps[at(&s - kernel_.steps.data())];
        for (const VariableId v : touches.registers) add(Event::touch, v);
        access(s);
        store_staged(s, touches.boxes);
        if (touches.runs_beside) add(Event::begin, variable_of(s));
        for (const VariableId v : touches.operands)
            add(touches.runs_beside ? Event::factor : Event::read, v, iteration_of(v, s.ahead));
        if (kernel_.lazy && &s == &kernel_.step(kernel_.lazy->weights)) run_again(s);
    }
    /// Where conditional rescaling moves the maximum, the weights are computed again from their operands, and waited
    /// for.
    void run_again(const Step& weights) {
        for (const StepId again : kernel_.lazy->again)
            for (const Read* r : kernel_.step(again).reads)
                if (kernel_.is_operand(r->variable()))
                    add(Event::read, r->variable(), iteration_of(r->variable(), weights.ahead));
    }

    void loop(const LoopId ref) {
        const ScheduledLoop& l = kernel_.loop(ref);
        if (!kernel_.on_tensor_cores()) {
            for (std::int64_t t = 0; t < turns_[at(ref)]; ++t) walk(l.body);
            return;
        }
        const std::vector<const Step*> operands = kernel_.operand_loads(l.scope);
        std::int64_t& turn = loop_iterations_[l.scope];
        const std::int64_t last = turn + turns_[at(ref)];
        // A producer role is as far ahead as there are free stages. Otherwise copies are asked for so many iterations
        // ahead.
        const int ahead = operands.empty() || kernel_.producer_role()
                              ? 0
                              : kernel_.place(kernel_.operand_loaded(*operands.front())).stages - 1;
        const auto copy_all = [&](std::int64_t t) {
            for (const Step* s : operands)
                if (t < last) fill(*s, t);
        };
        first_iterations_[l.scope] = turn;
        if (l.synchronizes_before) meet();
        for (int t = 0; t < ahead; ++t) copy_all(turn + t);
        const bool runs_ahead = !copies() && !l.prologue.empty() && turn < last;
        if (turn == last) walk(l.skipped);
        if (runs_ahead) {
            --turn;
            walk(l.prologue);
            ++turn;
        }
        while (turn < last) {
            if (l.synchronizes) meet();
            copy_all(turn + ahead);
            walk(runs_ahead && turn + 1 == last ? l.epilogue : l.body);
            ++turn;
        }
    }

    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const StepId* s = std::get_if<StepId>(&node)) step(kernel_.step(*s));
            if (const auto* run = std::get_if<FusedStatements>(&node))
                for (const StepId s : run->steps) step(kernel_.step(s));
            if (const auto* l = std::get_if<LoopId>(&node)) loop(*l);
            if (const auto* waits = std::get_if<WaitGroup>(&node)) settle(*waits);
        }
    }

    const ScheduledKernel& kernel_;
    const Accesses& accesses_of_steps_;
    const std::vector<std::int64_t>& turns_;
    std::size_t warp_;
    std::int64_t accesses_ = 0;
    std::map<int, std::int64_t> first_iterations_;  ///< by scope: the loop's first iteration in this CTA tile
    std::map<int, std::int64_t> loop_iterations_;   ///< by scope, over all CTA tiles
    std::int64_t group_iteration_ = 0;
    Trace out_;
};

/// Runs the warps' traces beside each other.
class RaceChecker {
public:
    RaceChecker(const ScheduledKernel& kernel, const Accesses& touches, const std::vector<std::int64_t>& turns)
        : kernel_(kernel), accesses_of_steps_(touches) {
        for (std::size_t w = 0; w < (kernel.producer_role() ? block_warps : num_computing); ++w)
            traces_.push_back(w > 0 && !kernel.on_tensor_cores() ? traces_.front()
                                                                 : TraceWriter(kernel, touches, turns, w).run());
        if (kernel.in_cluster() && kernel.producer_role()) {
            for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
                if (cluster_part(kernel, VariableId::of(v))) shared_.push_back(VariableId::of(v));
            traces_.resize(most_blocks * block_warps);
            std::copy_n(traces_.begin(), block_warps, traces_.begin() + block_warps);
        }
        accesses_.assign(1 + block_of(traces_.size() - 1), std::vector<RegionAccesses>(touches.areas.size()));
        stages_.resize(accesses_.size());
        next_.assign(traces_.size(), 0);
        products_.resize(traces_.size()), boxes_.resize(traces_.size());
    }

    std::optional<Fault> run() {
        bool moves = true;
        while (moves && !fault_) {
            moves = false;
            for (std::size_t w = 0; w < traces_.size(); ++w)
                while (!fault_ && next_[w] < traces_[w].size() && happens(w, traces_[w][next_[w]]))
                    ++next_[w], moves = true;
            for (std::size_t block = 0; block < stages_.size(); ++block)
                if (meet(block * block_warps)) moves = true;
            if (cluster_barrier()) moves = true;
        }
        for (const std::vector<Product>& left : products_)
            if (!left.empty()) fail("is never waited for", {Event::begin, left.front().result, 0});
        for (const Boxes& boxes : boxes_)
            if (!boxes.sent.empty())
                fail("may still be read as the block ends", {Event::send, boxes.sent.front().first, 0});
        for (std::size_t w = 0; w < traces_.size(); ++w)
            if (next_[w] < traces_[w].size() && traces_[w][next_[w]].kind != Event::access)
                fail("is waited for without end", traces_[w][next_[w]]);
        return fault_;
    }

private:
    /// A copy of a tile, or the part of it that one warp or one CTA of a cluster copies.
    struct Part {
        std::int64_t turn = -1;  ///< the iteration whose tile it holds
        int fills = 0;
        std::array<int, num_warps> awaited{};  ///< the warp's step that waited for the last copy; 0: none has
    };
    struct Stage {
        std::vector<Part> parts;
        std::array<int, num_warps> read{};     ///< the warp's step that read it last; 0: none has
        std::array<int, num_warps> reading{};  ///< products of the warp that are in flight and read it
        std::array<bool, num_warps> freed{};
        int frees = 0;               ///< times that all warps released it
        Clock freeing{};             ///< what they knew when they did
        bool is_by_threads = false;  ///< threads wrote it last, and no bulk copy
    };
    /// When a warp last read or wrote a region: its step, and the event in its trace.
    struct Access {
        int step = 0;  ///< 0: it has not
        const Event* event = nullptr;
    };
    struct RegionAccesses {
        std::array<Access, num_warps> read{}, written{};
    };

    /// A product of a warp, in flight.
    struct Product {
        VariableId result = -1;
        std::vector<Event> factors;
    };

    /// Staging tiles of a warp, each with its variable and its number.
    struct Boxes {
        std::vector<std::pair<VariableId, std::int64_t>> sent;  ///< sent, in their order; they may still be read
        std::vector<std::pair<VariableId, std::int64_t>> own;   ///< written, and visible to the warp alone
    };

    void fail(const std::string& what, const Event& e) {
        if (fault_) return;
        fault_ = Fault{e.operand < 0 ? "a warp waits for the others without end"
                                     : fmt::format("{} {}", kernel_.variable(e.operand).name, what)};
    }
    /// Each CTA of the cluster has stages of its own. Where CTAs copy for each other, a stage has a part from each of
    /// them.
    Stage& stage(std::size_t block, const Event& e) {
        const int stages = kernel_.place(e.operand).stages;
        std::vector<Stage>& all = stages_[block][e.operand];
        all.resize(static_cast<std::size_t>(stages));
        Stage& found = all[at(e.turn % stages)];
        found.parts.resize(!kernel_.has_bulk_copies() ? num_computing : contains(shared_, e.operand) ? most_blocks : 1);
        return found;
    }
    [[nodiscard]] std::size_t part_of(std::size_t w, const Event& e) const {
        return !kernel_.has_bulk_copies() ? w : contains(shared_, e.operand) ? block_of(w) : 0;
    }
    /// Calls f for the CTAs whose stages a warp fills or releases. These are all of the cluster where they copy for
    /// each other.
    template <class F>
    void each_block_with(std::size_t w, const Event& e, F f) {
        const bool is_shared = contains(shared_, e.operand);
        for (std::size_t block = 0; block < stages_.size(); ++block)
            if (is_shared || block == block_of(w)) f(block);
    }
    /// A warp may access another CTA's memory once that CTA has made its barriers, and until it ends (leave).
    void reach(std::size_t w, std::size_t block, const Event& e) {
        if (block == block_of(w)) return;
        if (!knows(w, block * block_warps, made_[block]))
            fail("is shared with a block whose barriers may not be made yet", e);
        last_reach_[w] = mark(w);
    }
    /// The next step of a warp, which is done with its event.
    int mark(std::size_t w) { return ++clocks_[w][w]; }
    [[nodiscard]] bool knows(std::size_t w, std::size_t other, int step) const {
        return step > 0 && step <= clocks_[w][other];
    }
    [[nodiscard]] bool knows_copied(std::size_t w, const Part& part) const {
        for (std::size_t other = 0; other < num_warps; ++other)
            if (knows(w, other, part.awaited[other])) return true;
        return false;
    }

    [[nodiscard]] bool is_at(std::size_t w, Event::Kind kind) const {
        return next_[w] < traces_[w].size() && traces_[w][next_[w]].kind == kind;
    }
    /// Lets the consumer warps of the CTA with this first warp go on once all of them are at their barrier.
    bool meet(std::size_t first) {
        for (std::size_t w = first; w < first + num_computing; ++w)
            if (!is_at(w, Event::meet)) return false;
        Clock all{};
        for (std::size_t w = first; w < first + num_computing; ++w) take_in(all, clocks_[w]);
        for (std::size_t w = first; w < first + num_computing; ++w) take_in(clocks_[w], all), ++next_[w];
        return true;
    }
    /// Lets all warps of the cluster go on once all that have not ended are at its barrier.
    bool cluster_barrier() {
        Clock all{};
        bool is_any = false;
        for (std::size_t w = 0; w < traces_.size(); ++w) {
            if (next_[w] == traces_[w].size()) continue;
            if (!is_at(w, Event::cluster_barrier)) return false;
            take_in(all, clocks_[w]);
            is_any = true;
        }
        for (std::size_t w = 0; w < traces_.size() && is_any; ++w)
            if (next_[w] < traces_[w].size()) take_in(clocks_[w], all), ++next_[w];
        return is_any;
    }
    /// Checks that all that other CTAs do to this one's memory is done, as far as the warp knows. Their warps have
    /// released their last stages, and their copies have arrived.
    void leave(std::size_t w) {
        for (std::size_t other = 0; other < traces_.size(); ++other)
            if (block_of(other) != block_of(w) && other % block_warps != copying &&
                (last_reach_[other] > clocks_[w][other] || releases_left(other)))
                return fail("is freed in a block that may have ended", {Event::free, shared_.front(), 0});
        for (const VariableId v : shared_)
            for (const Stage& s : stages_[block_of(w)][v])
                for (const Part& part : s.parts)
                    if (part.fills > 0 && !knows_copied(w, part))
                        fail("is copied to a block that may have ended", {Event::fill, v, part.turn});
    }
    [[nodiscard]] bool releases_left(std::size_t w) const {
        return std::any_of(traces_[w].begin() + static_cast<std::ptrdiff_t>(next_[w]), traces_[w].end(),
                           [&](const Event& e) { return e.kind == Event::free && contains(shared_, e.operand); });
    }

    /// Whether the event happens; false: the warp has to wait.
    bool happens(std::size_t w, const Event& e) {
        if (e.kind == Event::meet || e.kind == Event::cluster_barrier) return false;
        if (e.kind == Event::access) return access(w, e);
        if (e.kind == Event::init) made_[block_of(w)] = mark(w);
        if (e.kind == Event::leave) leave(w);
        if (e.kind == Event::init || e.kind == Event::leave) return true;
        std::vector<Product>& products = products_[w];
        if (e.kind == Event::begin) products.push_back({e.operand, {}});
        if (e.kind == Event::settle)
            for (; static_cast<std::int64_t>(products.size()) > e.turn; products.erase(products.begin()))
                for (const Event& factor : products.front().factors)
                    --stage(block_of(w), factor).reading[w], stage(block_of(w), factor).read[w] = mark(w);
        if (e.kind == Event::touch)
            for (const Product& p : products)
                if (p.result == e.operand) fail("is touched while a product computes it", e);
        if (e.kind == Event::begin || e.kind == Event::settle || e.kind == Event::touch || handles_staging(boxes_[w], e))
            return true;
        Stage& s = stage(block_of(w), e);
        switch (e.kind) {
            default: return false;
            case Event::fill:
                each_block_with(w, e, [&](std::size_t block) {
                    reach(w, block, e);
                    Stage& there = stage(block, e);
                    fill(w, e, there, there.parts[part_of(w, e)]);
                });
                return true;
            case Event::await: return await(w, e, s);
            case Event::read:
            case Event::factor:
                for (const Part& part : s.parts)
                    if (part.turn != e.turn || !knows_copied(w, part)) fail("is read before its copy is waited for", e);
                // The tensor core reads beside the threads, and sees what they write only after a proxy fence.
                if (e.kind == Event::factor && s.is_by_threads)
                    fail("is read by the matrix unit where threads wrote, with no fence between them", e);
                if (e.kind == Event::read)
                    s.read[w] = mark(w);
                else
                    ++s.reading[w], products.back().factors.push_back(e);
                return true;
            case Event::free:
                each_block_with(w, e, [&](std::size_t block) { reach(w, block, e), free(w, e, stage(block, e)); });
                return true;
            case Event::refill: {
                const int fills = s.parts[part_of(w, e)].fills;
                if (s.frees < fills) return false;
                if (fills > 0) take_in(clocks_[w], s.freeing);
                return true;
            }
        }
        return true;
    }
    /// The barrier of a bulk copy covers the whole tile. With copies by threads, each warp knows its own part.
    bool await(std::size_t w, const Event& e, Stage& s) {
        const auto each = [&](auto&& of_part) {
            if (kernel_.has_bulk_copies()) return all_of(s.parts, of_part);
            return of_part(s.parts[w]);
        };
        each([&](const Part& part) {
            if (part.turn > e.turn) fail("is copied over before the copy before it is waited for", e);
            return true;
        });
        if (!each([&](const Part& part) { return part.turn == e.turn; })) return false;
        return each([&](Part& part) {
            if (part.awaited[w] == 0) part.awaited[w] = mark(w);
            return true;
        });
    }
    bool handles_staging(Boxes& boxes, const Event& e) {
        const std::pair box{e.operand, e.turn};
        if (e.kind == Event::await_staging)
            while (static_cast<std::int64_t>(boxes.sent.size()) > e.turn) boxes.sent.erase(boxes.sent.begin());
        if (e.kind == Event::write_box) {
            if (contains(boxes.sent, box)) fail("is written to a box that may still be read", e);
            boxes.own.push_back(box);
        }
        if (e.kind == Event::publish) boxes.own.clear();
        if (e.kind == Event::send) {
            if (contains(boxes.own, box)) fail("is sent out of a box before its values are there for bulk copies", e);
            boxes.sent.push_back(box);
        }
        return e.kind >= Event::await_staging && e.kind <= Event::send;
    }
    void fill(std::size_t w, const Event& e, Stage& s, Part& part) {
        for (std::size_t other = 0; other < num_warps; ++other)
            if (s.reading[other] > 0 || s.read[other] > clocks_[w][other])
                fail("is copied over while a warp may still read it", e);
        if (part.fills > 0 && !knows_copied(w, part)) fail("is copied over before the copy before it is waited for", e);
        copy(w, e);
        ++part.fills;
        part.turn = e.turn, part.awaited = {};
        s.is_by_threads = !kernel_.has_bulk_copies();
    }
    /// Checks a copy against what threads did to the array that it reads and to the place of its tile. The copying warp
    /// must know of all of it. A bulk copy must not follow a write of threads at all, as no proxy fence stands between
    /// them.
    void copy(std::size_t w, const Event& e) {
        const OperandRegions& own = accesses_of_steps_.operands[e.operand];
        for (const auto& [area, writes] : {MemoryAccess{own.tiles, true}, MemoryAccess{own.array, false}})
            for (const int met : accesses_of_steps_.areas[at(area)].meets)
                for (std::size_t other = first_of_block(w); other < first_of_block(w) + num_computing; ++other) {
                    const RegionAccesses& there = accesses_[block_of(w)][at(met)];
                    const int last = std::max(there.written[other].step, writes ? there.read[other].step : 0);
                    if (kernel_.has_bulk_copies() && there.written[other].step > 0)
                        fail("is copied from where or to where threads wrote, with no fence between them", e);
                    if (other != w && last > clocks_[w][other])
                        fail("is copied while other warps may still be at its place", e);
                }
    }

    /// Warps make shared accesses side by side, so that the first fault found is the first in the order of the program.
    bool access(std::size_t w, const Event& e) {
        const std::size_t first = first_of_block(w);
        for (std::size_t other = first; other < first + num_computing; ++other)
            if (num_accesses_[other] < num_accesses_[w]) return false;
        ++num_accesses_[w];
        const StepAccesses& touches = accesses_of_steps_.steps[at(e.step)];
        const std::vector<MemoryAccess>& all = e.is_second ? touches.second : touches.first;
        for (const MemoryAccess& touch : all)
            for (const int met : accesses_of_steps_.areas[at(touch.area)].meets) {
                if (accesses_of_steps_.areas[at(met)].operand >= 0)
                    common_operand(w, e, touch, accesses_of_steps_.areas[at(met)].operand);
                for (std::size_t other = first; other < first + num_computing; ++other) {
                    if (other == w) continue;
                    const RegionAccesses& there = accesses_[block_of(w)][at(met)];
                    if (is_open(w, other, there.written[other], e)) fail(e, *there.written[other].event, touch);
                    if (touch.writes && is_open(w, other, there.read[other], e))
                        fail(e, *there.read[other].event, touch);
                }
            }
        const int now = mark(w);
        for (const MemoryAccess& touch : all) {
            RegionAccesses& there = accesses_[block_of(w)][at(touch.area)];
            (touch.writes ? there.written : there.read)[w] = {now, &e};
        }
        return true;
    }
    /// Whether the warp does not know that the other one is done with its access. Accesses of the same number do not
    /// conflict.
    [[nodiscard]] bool is_open(std::size_t w, std::size_t other, const Access& before, const Event& now) const {
        return before.step > clocks_[w][other] && before.event->turn != now.turn;
    }
    void fail(const Event& now, const Event& before, const MemoryAccess& touch) {
        if (fault_) return;
        const auto name = [&](const Event& e) { return kernel_.variable(variable_of(kernel_.steps[e.step])).name; };
        const bool is_inside = now.is_second && before.step == now.step && before.turn + 1 == now.turn;
        fault_ = Fault{fmt::format("the statement of {} {} {} before all warps are done with it in that of {}",
                                   name(now), touch.writes ? "writes" : "reads",
                                   name_of(kernel_, accesses_of_steps_.areas[at(touch.area)]), name(before)),
                       now.step, is_inside};
    }
    /// Checks accesses of threads to memory where an operand has its stages.
    void common_operand(std::size_t w, const Event& e, const MemoryAccess& touch, VariableId operand) {
        for (Stage& s : stages_[block_of(w)][operand]) {
            const Event of_operand{Event::read, operand};
            for (const Part& part : s.parts)
                if (part.fills > 0 && !knows_copied(w, part))
                    fail("is copied to where threads may be meanwhile", of_operand);
            if (!touch.writes) continue;
            for (std::size_t other = 0; other < num_warps; ++other)
                if (s.reading[other] > 0 || (other != w && s.read[other] > clocks_[w][other]))
                    fail(fmt::format("is read where {} may be written meanwhile",
                                     kernel_.variable(variable_of(kernel_.steps[e.step])).name),
                         of_operand);
            s.is_by_threads = true;
        }
    }
    void free(std::size_t w, const Event& e, Stage& s) {
        if (s.freed[w] || s.frees >= s.parts[0].fills) return fail("is freed twice", e);
        s.freed[w] = true;
        take_in(s.freeing, clocks_[w]);
        bool is_free = true;
        each_block_with(w, e, [&](std::size_t block) {
            for (std::size_t c = 0; c < num_computing; ++c) is_free &= s.freed[block * block_warps + c];
        });
        if (!is_free) return;
        ++s.frees;
        s.freed = {};
    }

    const ScheduledKernel& kernel_;
    const Accesses& accesses_of_steps_;
    std::vector<Trace> traces_;
    std::vector<std::size_t> next_;
    std::array<Clock, num_warps> clocks_{};
    std::vector<VariableId> shared_;  ///< operands that the CTAs of a cluster copy for each other
    std::vector<std::map<VariableId, std::vector<Stage>>> stages_;  ///< by CTA
    /// By CTA: the step of its first warp that made its barriers; 0: none has.
    std::array<int, most_blocks> made_{};
    std::array<int, num_warps> last_reach_{};            ///< by warp: its last step that accessed another CTA's memory
    std::vector<std::vector<Product>> products_;         ///< by warp
    std::vector<Boxes> boxes_;                           ///< by warp
    std::vector<std::vector<RegionAccesses>> accesses_;  ///< by CTA, then by region
    std::array<std::int64_t, num_warps> num_accesses_{};
    std::optional<Fault> fault_;
};

/// Iteration counts of the loops in the runs that together find all that there is to find: by run, then by loop.
std::vector<std::vector<std::int64_t>> iterations_to_run(const ScheduledKernel& kernel) {
    int stages = 1;
    for (const Place& place : kernel.schedule.places) stages = std::max(stages, place.stages);
    std::vector<std::vector<std::int64_t>> choices;  // by loop
    for (const ScheduledLoop& l : kernel.loops) {
        const Iterations turns = iterations_of(kernel, l);
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

std::optional<Fault> first_race(const ScheduledKernel& kernel, const Accesses& touches) {
    for (const std::vector<std::int64_t>& turns : iterations_to_run(kernel))
        if (auto fault = RaceChecker(kernel, touches, turns).run()) return fault;
    return std::nullopt;
}

bool is_race_free(const ScheduledKernel& kernel, const Accesses& touches, std::vector<std::int64_t>& suspect) {
    const std::vector<std::vector<std::int64_t>> all = iterations_to_run(kernel);
    const bool is_suspect_run = contains(all, suspect);
    if (is_suspect_run && RaceChecker(kernel, touches, suspect).run()) return false;
    for (const std::vector<std::int64_t>& turns : all)
        if (!(is_suspect_run && turns == suspect) && RaceChecker(kernel, touches, turns).run()) {
            suspect = turns;
            return false;
        }
    return true;
}

std::string race_text(const ScheduledKernel& kernel) {
    const auto fault = first_race(kernel, accesses_of(kernel));
    return fault ? fault->what : "";
}

}  // namespace napkin
