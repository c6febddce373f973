#include "lower/race_checker.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "lower/race_events.hpp"
#include "schedule/cluster.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A vector clock for each warp.
class Clocks {
public:
    Clock& operator[](std::size_t w) { return of_[w]; }
    const Clock& operator[](std::size_t w) const { return of_[w]; }
    /// The next step of a warp, which is done with its event.
    int mark(std::size_t w) { return ++of_[w][w]; }
    [[nodiscard]] bool knows(std::size_t w, std::size_t other, int step) const {
        return step > 0 && step <= of_[w][other];
    }

private:
    std::array<Clock, num_warps> of_{};
};

/// Ping-pong, numbers of tiles and states of split tiles: what warps hand to each other.
class Handovers {
public:
    /// Whether the event happens; false: the warp has to wait. What a warp hands to others is known to those that wait
    /// for it. Nothing is written over before all have read it.
    bool happens(std::size_t w, const Event& e, Clocks& clocks) {
        const std::size_t first = first_of_block(w);
        Handover& number = numbers_[block_of(w)][at(e.turn % queue_stages)];
        Handover& states = states_[w % block_warps];
        switch (e.kind) {
            case Event::wait_ping_pong:
                if (turns_[w] == 0) return false;
                --turns_[w];
                return true;
            case Event::pass_ping_pong:
                if (++turns_[first + at(e.turn)] > 1) fail("a warpgroup is passed a turn while it has one");
                return true;
            case Event::write_number:
                for (std::size_t other = first; other < first + num_computing; ++other)
                    if (number.read[other] > clocks[w][other]) fail("a tile's number is written over while it is read");
                number.written = clocks.mark(w), number.turn = e.turn;
                return true;
            case Event::signal_number: number.signalled = e.turn, number.at_signal = clocks[w]; return true;
            case Event::await_number:
                if (number.signalled != e.turn) return false;
                take_in(clocks[w], number.at_signal);
                return true;
            case Event::read_number:
                if (number.turn != e.turn || !clocks.knows(w, first + copying, number.written))
                    fail("a tile's number is read before it is there");
                number.read[w] = clocks.mark(w);
                return true;
            case Event::free_number: ++number.frees, take_in(number.freeing, clocks[w]); return true;
            case Event::refill_number:
                if (e.turn >= queue_stages && number.frees < num_computing * at(e.turn / queue_stages)) return false;
                take_in(clocks[w], number.freeing);
                return true;
            case Event::write_states: states.written = clocks.mark(w); return true;
            case Event::signal_states: states.signalled = 0, states.at_signal = clocks[w]; return true;
            case Event::await_states:
                if (states.signalled < 0) return false;
                take_in(clocks[w], states.at_signal);
                return true;
            case Event::read_states:
                if (!clocks.knows(w, w % block_warps, states.written)) fail("states are merged before they are there");
                return true;
            default: return true;
        }
    }
    [[nodiscard]] const std::optional<Fault>& fault() const { return fault_; }

private:
    void fail(const char* what) {
        if (!fault_) fault_ = Fault{what};
    }
    /// What one warp writes for others: the number of a tile, or the states of a part.
    struct Handover {
        std::int64_t turn = -1, signalled = -1;
        int written = 0;  ///< the writer's step; 0: none
        Clock at_signal{}, freeing{};
        std::array<int, num_warps> read{};
        std::size_t frees = 0;
    };

    std::array<int, num_warps> turns_{};  ///< by warp: how often it was passed the tensor cores and has not waited
    std::array<std::array<Handover, queue_stages>, most_blocks> numbers_{};  ///< by CTA: stages of the tile queue
    std::array<Handover, block_warps> states_{};                             ///< by warp of the first part's CTA
    std::optional<Fault> fault_;
};

/// The staging tiles of a warp, each with its variable and its number.
class StagingTiles {
public:
    /// What is wrong with the event; "": nothing is.
    std::string happens(const Event& e) {
        const std::pair tile{e.operand, e.turn};
        if (e.kind == Event::await_staging)
            while (static_cast<std::int64_t>(sent_.size()) > e.turn) sent_.erase(sent_.begin());
        if (e.kind == Event::publish) own_.clear();
        if (e.kind == Event::write_staging) {
            own_.push_back(tile);
            if (contains(sent_, tile)) return "is written to a box that may still be read";
        }
        if (e.kind == Event::send) {
            sent_.push_back(tile);
            if (contains(own_, tile)) return "is sent out of a box before its values are there for bulk copies";
        }
        return "";
    }
    /// The variable of one that may still be read.
    [[nodiscard]] std::optional<VariableId> open() const {
        return sent_.empty() ? std::nullopt : std::optional(sent_.front().first);
    }
    static bool is_about(const Event& e) { return e.kind >= Event::await_staging && e.kind <= Event::send; }

private:
    std::vector<std::pair<VariableId, std::int64_t>> sent_;  ///< sent, in their order; they may still be read
    std::vector<std::pair<VariableId, std::int64_t>> own_;   ///< written, and visible to the warp alone
};

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
    const Event* begin = nullptr;
    std::vector<Event> factors;
};

/// Tiles that threads write and products read beside them (MemorySpace::written).
class WrittenTiles {
public:
    explicit WrittenTiles(const Accesses& accesses) : accesses_(accesses) {}

    void wrote(std::size_t w, int area) { unfenced_[w].push_back(area); }
    void fence(std::size_t w) { unfenced_[w].clear(); }
    void begin(std::size_t w, const Event& product) { in_flight_[w].push_back(&product); }
    /// The warp's first product in flight, which is over. Pre: there is one.
    const Event* end(std::size_t w) {
        const Event* out = in_flight_[w].front();
        in_flight_[w].erase(in_flight_[w].begin());
        return out;
    }
    /// Their regions.
    [[nodiscard]] std::vector<int> read_by(const Event& product) const {
        std::vector<int> out;
        for (const MemoryAccess& read : accesses_.steps[product.step].first)
            if (!read.writes) out.push_back(read.area);
        return out;
    }
    /// A warp of the CTA has written where the product reads, with no proxy fence since.
    [[nodiscard]] bool is_unfenced(std::size_t w, const Event& product) const {
        return any_of_cta(w, [&](std::size_t other) {
            return any_of(read_by(product), [&](int area) {
                return any_of(accesses_.areas[at(area)].meets, [&](int met) { return contains(unfenced_[other], met); });
            });
        });
    }
    /// A product of the CTA that is in flight and reads the region; null: none does.
    [[nodiscard]] const Event* reader(std::size_t w, int area) const {
        const Event* found = nullptr;
        any_of_cta(w, [&](std::size_t other) {
            for (const Event* product : in_flight_[other])
                if (contains(read_by(*product), area)) found = product;
            return found != nullptr;
        });
        return found;
    }

private:
    template <class F>
    static bool any_of_cta(std::size_t w, F f) {
        for (std::size_t other = first_of_block(w); other < first_of_block(w) + num_computing; ++other)
            if (f(other)) return true;
        return false;
    }

    const Accesses& accesses_;
    std::array<std::vector<int>, num_warps> unfenced_;            ///< by warp: what it wrote since its last proxy fence
    std::array<std::vector<const Event*>, num_warps> in_flight_;  ///< by warp
};

/// How far each warp has come in its trace, and what it knows of the others.
struct Progress {
    std::vector<Trace> traces;
    std::vector<std::size_t> next = std::vector<std::size_t>(traces.size(), 0);
    Clocks clocks = {};

    [[nodiscard]] bool is_at(std::size_t w, Event::Kind kind) const {
        return next[w] < traces[w].size() && traces[w][next[w]].kind == kind;
    }
    [[nodiscard]] std::optional<std::size_t> first_at(Event::Kind kind) const {
        for (std::size_t w = 0; w < traces.size(); ++w)
            if (is_at(w, kind)) return w;
        return std::nullopt;
    }
    /// Whether the warp does not know that the other one is done with its access. Accesses of the same number do not
    /// conflict.
    [[nodiscard]] bool is_open(std::size_t w, std::size_t other, const Access& before, const Event& now) const {
        return before.step > clocks[w][other] && before.event->turn != now.turn;
    }
    /// Lets the consumer warps of the CTA with this first warp go on once all of them are at their barrier.
    bool meet(std::size_t first) {
        for (std::size_t w = first; w < first + num_computing; ++w)
            if (!is_at(w, Event::meet)) return false;
        Clock all{};
        for (std::size_t w = first; w < first + num_computing; ++w) take_in(all, clocks[w]);
        for (std::size_t w = first; w < first + num_computing; ++w) take_in(clocks[w], all), ++next[w];
        return true;
    }
    /// The same with all warps of the CTA, at their first barrier.
    bool cta_barrier(std::size_t first) {
        const std::size_t end = std::min(first + block_warps, traces.size());
        const auto is_there = [&](std::size_t w) { return !traces[w].empty(); };
        for (std::size_t w = first; w < end; ++w)
            if (is_there(w) && !is_at(w, Event::cta_barrier)) return false;
        Clock all{};
        bool is_any = false;
        for (std::size_t w = first; w < end; ++w) take_in(all, clocks[w]);
        for (std::size_t w = first; w < end; ++w)
            if (is_there(w)) take_in(clocks[w], all), ++next[w], is_any = true;
        return is_any;
    }
    /// Lets all warps of the cluster go on once all that have not ended are at its barrier.
    bool cluster_barrier() {
        Clock all{};
        bool is_any = false;
        for (std::size_t w = 0; w < traces.size(); ++w) {
            if (next[w] == traces[w].size()) continue;
            if (!is_at(w, Event::cluster_barrier)) return false;
            take_in(all, clocks[w]);
            is_any = true;
        }
        for (std::size_t w = 0; w < traces.size() && is_any; ++w)
            if (next[w] < traces[w].size()) take_in(clocks[w], all), ++next[w];
        return is_any;
    }
    [[nodiscard]] bool knows_copied(std::size_t w, const Part& part) const {
        for (std::size_t other = 0; other < num_warps; ++other)
            if (clocks.knows(w, other, part.awaited[other])) return true;
        return false;
    }
    /// Whether it has still to release one of the operands.
    [[nodiscard]] bool releases_left(std::size_t w, const std::vector<VariableId>& operands) const {
        return std::any_of(traces[w].begin() + static_cast<std::ptrdiff_t>(next[w]), traces[w].end(),
                           [&](const Event& e) { return e.kind == Event::free && contains(operands, e.operand); });
    }
};

/// Runs the warps' traces beside each other.
class RaceChecker {
public:
    RaceChecker(const ScheduledKernel& kernel, const Accesses& touches, std::vector<Trace> traces)
        : kernel_(kernel), accesses_of_steps_(touches), progress_{std::move(traces)} {
        if (kernel.in_cluster() && kernel.producer_role())
            for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
                if (cluster_part(kernel, VariableId::of(v))) shared_.push_back(VariableId::of(v));
        makes_barriers_ = any_of(traces_.front(), [](const Event& e) { return e.kind == Event::init_barriers; });
        accesses_.assign(1 + block_of(traces_.size() - 1), std::vector<RegionAccesses>(touches.areas.size()));
        stages_.resize(accesses_.size());
        products_.resize(traces_.size()), staging_.resize(traces_.size());
    }

    std::optional<Fault> run() {
        bool moves = true;
        while (moves && !fault_) {
            moves = false;
            for (std::size_t w = 0; w < traces_.size(); ++w)
                while (!fault_ && next_[w] < traces_[w].size() && happens(w, traces_[w][next_[w]]))
                    ++next_[w], moves = true;
            for (std::size_t block = 0; block < stages_.size(); ++block) {
                if (progress_.meet(block * block_warps)) moves = true;
                if (progress_.cta_barrier(block * block_warps)) moves = true;
            }
            if (progress_.cluster_barrier()) moves = true;
            // Where no warp can go on, one that waits for others to make as many accesses goes on by itself:
            // warpgroups with K blocks of their own make fewer.
            if (const auto w = moves || fault_ ? std::nullopt : progress_.first_at(Event::access))
                access(*w, traces_[*w][next_[*w]], false), ++next_[*w], moves = true;
        }
        for (std::size_t w = 0; w < traces_.size(); ++w)
            if (next_[w] < traces_[w].size()) fail("is waited for without end", traces_[w][next_[w]]);
        for (const std::vector<Product>& left : products_)
            if (!left.empty()) fail("is never waited for", *left.front().begin);
        for (const StagingTiles& tiles : staging_)
            if (const auto left = tiles.open()) fail("may still be read as the block ends", {Event::send, *left, 0});
        return fault_;
    }

private:
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
    /// A warp may use the barriers of its CTA once they are made.
    void uses_barriers(std::size_t w, const Event& e) {
        if (makes_barriers_ && !knows(w, first_of_block(w), made_[block_of(w)]))
            fail("is handed over by barriers that may not be made yet", e);
    }
    int mark(std::size_t w) { return clocks_.mark(w); }
    [[nodiscard]] bool knows(std::size_t w, std::size_t other, int step) const { return clocks_.knows(w, other, step); }
    /// Checks that all that other CTAs do to this one's memory is done, as far as the warp knows. Their warps have
    /// released their last stages, and their copies have arrived.
    void leave(std::size_t w) {
        for (std::size_t other = 0; other < traces_.size(); ++other)
            if (block_of(other) != block_of(w) && other % block_warps != copying &&
                (last_reach_[other] > clocks_[w][other] || progress_.releases_left(other, shared_)))
                return fail("is freed in a block that may have ended", {Event::free, shared_.front(), 0});
        for (const VariableId v : shared_)
            for (const Stage& s : stages_[block_of(w)][v])
                for (const Part& part : s.parts)
                    if (part.fills > 0 && !progress_.knows_copied(w, part))
                        fail("is copied to a block that may have ended", {Event::fill, v, part.turn});
    }
    /// Whether the event happens; false: the warp has to wait.
    bool happens(std::size_t w, const Event& e) {
        if (e.kind == Event::meet || e.kind == Event::cluster_barrier || e.kind == Event::cta_barrier) return false;
        if (e.kind == Event::access) return access(w, e);
        if (e.kind >= Event::wait_ping_pong) {
            if (e.kind >= Event::signal_number && e.kind <= Event::refill_number && e.kind != Event::read_number)
                uses_barriers(w, e);
            const bool has_happened = handovers_.happens(w, e, clocks_);
            if (!fault_) fault_ = handovers_.fault();
            return has_happened;
        }
        if (e.kind == Event::init_barriers) made_[block_of(w)] = mark(w);
        if (e.kind == Event::leave) leave(w);
        if (e.kind == Event::init_barriers || e.kind == Event::leave) return true;
        if (e.kind >= Event::fill && e.kind <= Event::await) uses_barriers(w, e);
        if (e.kind == Event::free || e.kind == Event::refill) uses_barriers(w, e);
        std::vector<Product>& products = products_[w];
        if (e.kind == Event::begin) {
            products.push_back({&e, {}}), tiles_.begin(w, e);
            // The tensor cores see what threads wrote to shared memory only after a proxy fence of those threads.
            if (tiles_.is_unfenced(w, e))
                fail("is read by the tensor cores where threads wrote, with no fence between them", e);
        }
        if (e.kind == Event::settle)
            for (; static_cast<std::int64_t>(products.size()) > e.turn; products.erase(products.begin())) {
                for (const Event& factor : products.front().factors)
                    --stage(block_of(w), factor).reading[w], stage(block_of(w), factor).read[w] = mark(w);
                for (const int area : tiles_.read_by(*tiles_.end(w)))
                    accesses_[block_of(w)][at(area)].read[w] = {mark(w), products.front().begin};
            }
        if (e.kind == Event::publish) tiles_.fence(w);
        if (e.kind == Event::touch)
            for (const Product& p : products)
                if (p.begin->operand == e.operand) fail("is touched while a product computes it", e);
        if (e.kind == Event::begin || e.kind == Event::settle || e.kind == Event::touch) return true;
        if (StagingTiles::is_about(e)) {
            if (const std::string what = staging_[w].happens(e); !what.empty()) fail(what, e);
            return true;
        }
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
                    if (part.turn != e.turn || !progress_.knows_copied(w, part))
                        fail("is read before its copy is waited for", e);
                // The tensor core reads beside the threads, and sees what they write only after a proxy fence.
                if (e.kind == Event::factor && s.is_by_threads)
                    fail("is read by the tensor cores where threads wrote, with no fence between them", e);
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
    void fill(std::size_t w, const Event& e, Stage& s, Part& part) {
        for (std::size_t other = 0; other < num_warps; ++other)
            if (s.reading[other] > 0 || s.read[other] > clocks_[w][other])
                fail("is copied over while a warp may still read it", e);
        if (part.fills > 0 && !progress_.knows_copied(w, part))
            fail("is copied over before the copy before it is waited for", e);
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
    bool access(std::size_t w, const Event& e, bool in_step = true) {
        const std::size_t first = first_of_block(w);
        for (std::size_t other = first; in_step && other < first + num_computing; ++other)
            if (num_accesses_[other] < num_accesses_[w]) return false;
        ++num_accesses_[w];
        const StepAccesses& touches = accesses_of_steps_.steps[at(e.step)];
        const std::vector<MemoryAccess>& all = e.is_second ? touches.second : touches.first;
        for (const MemoryAccess& touch : all)
            for (const int met : accesses_of_steps_.areas[at(touch.area)].meets) {
                if (accesses_of_steps_.areas[at(met)].operand >= 0)
                    common_operand(w, e, touch, accesses_of_steps_.areas[at(met)].operand);
                if (const Event* product = touch.writes ? tiles_.reader(w, met) : nullptr) fail(e, *product, touch);
                for (std::size_t other = first; other < first + num_computing; ++other) {
                    if (other == w) continue;
                    const RegionAccesses& there = accesses_[block_of(w)][at(met)];
                    if (progress_.is_open(w, other, there.written[other], e))
                        fail(e, *there.written[other].event, touch);
                    if (touch.writes && progress_.is_open(w, other, there.read[other], e))
                        fail(e, *there.read[other].event, touch);
                }
            }
        const int now = mark(w);
        for (const MemoryAccess& touch : all) {
            RegionAccesses& there = accesses_[block_of(w)][at(touch.area)];
            (touch.writes ? there.written : there.read)[w] = {now, &e};
            if (touch.writes) tiles_.wrote(w, touch.area);
        }
        return true;
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
                if (part.fills > 0 && !progress_.knows_copied(w, part))
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
    Progress progress_;
    std::vector<Trace>& traces_ = progress_.traces;
    std::vector<std::size_t>& next_ = progress_.next;
    Clocks& clocks_ = progress_.clocks;
    std::vector<VariableId> shared_;  ///< operands that the CTAs of a cluster copy for each other
    std::vector<std::map<VariableId, std::vector<Stage>>> stages_;  ///< by CTA
    /// By CTA: the step of its first warp that made its barriers; 0: none has.
    std::array<int, most_blocks> made_{};
    std::array<int, num_warps> last_reach_{};     ///< by warp: its last step that accessed another CTA's memory
    std::vector<std::vector<Product>> products_;  ///< by warp
    std::vector<StagingTiles> staging_;           ///< by warp
    WrittenTiles tiles_{accesses_of_steps_};
    std::vector<std::vector<RegionAccesses>> accesses_;  ///< by CTA, then by region
    std::array<std::int64_t, num_warps> num_accesses_{};
    bool makes_barriers_ = false;
    Handovers handovers_;
    std::optional<Fault> fault_;
};

}  // namespace

std::optional<Fault> first_fault(const ScheduledKernel& kernel, const Accesses& touches, std::vector<Trace> traces) {
    return RaceChecker(kernel, touches, std::move(traces)).run();
}

}  // namespace napkin
