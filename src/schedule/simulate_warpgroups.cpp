// The time of warpgroups for which producer warps copy operands. Each goes through its iterations at its own pace. The
// tensor cores, the units of threads and the pipes have the work of all warpgroups that share an SM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "machine/block_machine.hpp"
#include "schedule/conditional_rescale.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/modulo_body.hpp"
#include "schedule/simulate_parts.hpp"
#include "schedule/stream_k.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

// The next four constants are of kernels with producer warps, for each iteration. They are fitted to 78 schedules of
// attention: d = 64, 128 and 256, dense and causal, 512 to 16,384 positions, two to four warpgroups. The model meets
// times measured on one H200 on 2026-11-23 within 3% in the mean and 15% at most.

/// Clocks for which a warpgroup waits for its own results, in each statement.
constexpr double statement_latency_clocks = 97;
/// Fraction of them that is left where products of the previous iteration run meanwhile.
constexpr double latency_left_ahead = 0.67;
/// Fraction of those products that takes no time of its own, or of what is computed meanwhile if that is shorter.
constexpr double hidden_ahead = 0.42;
/// Exponent of the norm that joins the tensor cores, the other units and the pace of the warpgroups.
constexpr double units_exponent = 3.36;
/// The exponent where the loop has nothing but products, whose clock falls under the power limit. Fitted to 13 products
/// of bf16 and e4m3. The model meets times measured on one H200 on 2026-11-23 within 4% in the mean and 16% at most
/// (small batches).
constexpr double products_exponent = 2;
/// So many warpgroups that wait for nothing but products keep the tensor cores as busy as more do. For 8192³, four take
/// 1,425 µs and two 1,399 in another run, on one H200 on 2026-11-23.
constexpr double enough_warpgroups = 2;
/// Bytes of shared memory and L1 in an SM of compute capability 9.0 (CUDA C++ Programming Guide). Only its assembler
/// lets the operands of wgmma spill.
constexpr double shared_and_cache_bytes = 256 * 1024;
/// How often a warp waits for L2 where the parts of a split tile are merged.
constexpr double answers_of_parts = 6;
/// Clocks between a tile's last iteration and the next tile's first one, where a CTA takes several tiles. Fitted with
/// the constants for each iteration.
constexpr double clocks_to_next_group = 2470;
/// The same where each tile has a CTA of its own.
constexpr double clocks_to_next_block = 3840;

}  // namespace

/// Clocks for which the warps of a CTA wait for their own results in a statement on fragments. Where a loop only adds
/// products to their sums, nobody waits for one before the next. `instructions`: clocks that a product's instructions
/// take on top of their work.
double Simulator::latency_of_warpgroups(const ScheduledKernel& k, const Step& step, double instructions) {
    const AtomKind kind = k.atom(step).kind;
    if (kind == AtomKind::block) return 0;
    const StepId number = k.number(step);
    if (kind == AtomKind::fragment || kind == AtomKind::tile)
        return k.rescale && k.rescale->moves(number) ? 0 : statement_latency_clocks;
    const auto& compute = std::get<Compute>(*step.statement);
    if (only_adds_products(k, step.scope)) return 0;
    const bool is_corrected = compute.carry && !adds_in_place(compute) && !(k.rescale && k.rescale->is_corrected(step));
    return instructions + (is_corrected ? statement_latency_clocks : 0);
}

/// Clocks of an iteration for spilled registers. It goes through all registers in a circle, so that each is given up
/// before it is needed again: all of them go out and come in once an iteration. For attention in tiles of 128 rows the
/// assembler reports 1792, 3260 and 3904 bytes a thread. The estimates of 270, 334 and 398 registers make 2160, 2672
/// and 3184. What lives through the loop has its own place in local memory. That is 512, 1040 and 1272 bytes of stack,
/// where accumulators take 512, 1024 and 1024. L1 holds it where it has room beside shared memory.
double Simulator::clocks_of_spills(const ScheduledKernel& k) const {
    std::int64_t kept = 0;
    for (std::size_t v = 0; v < k.layouts.size(); ++v)
        if (const auto id = VariableId::of(v); k.is_in_registers(id) && k.variable(id).is_state)
            kept += fragment_registers(k, id);
    const auto bytes_of = [&](std::int64_t registers) {
        return static_cast<double>(registers * k.schedule.warps.value * k.lanes) * sizeof(float);
    };
    const double exchanged = 2 * bytes_of(most_registers(k)),
                 room = shared_and_cache_bytes / blocks_a_core(machine_) - static_cast<double>(k.arena_bytes());
    return bytes_of(kept) <= room
               ? clocks_of_shared(k, exchanged)
               : exchanged * machine_.clock_hz.value / machine_.levels[core_level_].bandwidth_bytes_per_s.value;
}

/// Statements of a loop that have no values in common, such as those of two row tiles, wait in parallel. Only the
/// longest chain's latency is left, shared out to all statements of the loop. Where registers spill, one statement runs
/// after the other.
void Simulator::leave_longest_chains(const ScheduledKernel& k, std::vector<double>& latency) {
    if (std::all_of(latency.begin(), latency.end(), [](double l) { return l == 0; })) return;
    if (k.on_tensor_cores() && spilled_registers(k) > 0) return;
    std::vector<std::size_t> chain(k.steps.size());  // for each step, the first one of its chain
    std::iota(chain.begin(), chain.end(), 0);
    const auto first_of = [&](std::size_t s) {
        while (chain[s] != s) s = chain[s];
        return s;
    };
    for (std::size_t a = 0; a < k.steps.size(); ++a)
        for (std::size_t b = a + 1; b < k.steps.size() && k.steps[StepId::of(a)].atom >= 0; ++b) {
            const Step &s = k.steps[StepId::of(a)], &t = k.steps[StepId::of(b)];
            if (t.atom < 0 || s.scope != t.scope) continue;
            if (variable_of(s) == variable_of(t) || reads(t, variable_of(s)) || reads(s, variable_of(t)))
                chain[first_of(b)] = first_of(a);
        }
    std::map<int, double> all, longest;  // by scope
    std::map<std::size_t, double> of_chain;
    for (const StepId s : k.steps.ids()) of_chain[first_of(s)] += latency[s];
    for (const StepId s : k.steps.ids()) {
        all[k.steps[s].scope] += latency[s];
        double& most = longest[k.steps[s].scope];
        most = std::max(most, of_chain[first_of(s)]);
    }
    for (const StepId s : k.steps.ids())
        if (const ScopeId scope = k.steps[s].scope; all[scope] > 0) latency[s] *= longest[scope] / all[scope];
}

/// Warpgroups among which units are shared: those of all resident CTAs of an SM.
double Simulator::warpgroups_beside(const ScheduledKernel& k) const {
    return static_cast<double>(k.schedule.warps.value) / schedulers_a_core * blocks_a_core(machine_);
}

/// Each iteration of the loop has one product, of all of its columns, whose results the rest of the iteration reads.
/// One example is block-scaled products of 8192×8192×8192 in tiles of 192×128 by three warpgroups. One H200 goes
/// through their iterations in 957 µs. Products take 608 of these, and all promotions 262.
bool Simulator::end_together(const ScheduledKernel& k) {
    if (runs_ahead(k) || k.schedule.ping_pong.value || k.loops.size() != 1) return false;
    const ScopeId scope = k.loops.front().scope;
    int products = 0;
    for (const Step& step : k.steps)
        if (step.scope == scope && step.atom >= 0 && k.atom(step).kind == AtomKind::mma) {
            if (k.atom(step).parts > 1) return false;
            ++products;
        }
    return products == 1 && !only_adds_products(k, scope);
}

/// Consumer warpgroups do not wait for each other. One is at the tensor cores while others compute, each at its own
/// pace, those of other resident CTAs among them. Nothing overlaps one iteration of a tile, unless other CTAs have work
/// meanwhile: the first product has no results to work on, and the last results have no product. A tile's pace is that
/// of the warpgroup with the most iterations. It is no faster than the stages of its operands come round.
TimeSum Simulator::seconds_of_warpgroups(const ScheduledKernel& k, const WarpgroupWork& w) const {
    const double all = warpgroups_beside(k), warpgroups = w.latency > 0 ? all : std::min(all, enough_warpgroups);
    double pace = w.core / warpgroups + w.latency;
    // In an order that runs ahead, a lone warpgroup is no faster than its statements that wait for each other. It is
    // also no faster than any overlap that was measured.
    if (runs_ahead(k))
        pace = std::max(
            pace * share_of_iteration_alone(k),
            (w.core - hidden_ahead * std::min(w.unit, w.core - w.unit)) / warpgroups + w.latency * latency_left_ahead);
    // Warpgroups that wait for the same tile share the tensor cores evenly until all have their results. Then they work
    // on these while the tensor cores stand still.
    const TimeSum stages = w.part("stages that come round", w.stages / w.own);
    if (all > 1 && end_together(k)) {
        TimeSum turns = w.part(w.unit_name, w.unit / w.own);
        turns.add(w.part("special functions", w.special / w.own));
        turns.add(w.part("other instructions", (w.core - w.unit - w.special) / w.own));
        turns.add(w.part("waits for own results", w.latency / w.own));
        return TimeSum::overlapped(std::max(w.stages, w.core + w.latency) / w.own, 0, {turns, stages});
    }
    const TimeSum own_pace = TimeSum::overlapped(std::max(w.stages, pace) / w.own, 0,
                                                 {w.own_pace(pace / w.own, warpgroups), stages});
    TimeSum beside = together_at_pace(k, w, own_pace);
    if (all <= 1)
        return TimeSum::overlapped(std::max(w.stages, beside.seconds()) / w.own, 0, {beside.scaled(1 / w.own), stages});
    const double one_by_one = w.core + w.latency - beside.seconds();
    beside.add(w.part("K blocks of a tile beside which nothing runs",
                      w.alone / blocks_a_core(machine_) * std::max(0.0, one_by_one)));
    return beside;
}

TimeSum Simulator::WarpgroupWork::own_pace(double seconds, double warpgroups) const {
    TimeSum out(text != nullptr);
    out.add(seconds, [&] {
        const auto clocks = [&](double of) { return number_text(text->clocks(of / text->waves, k_blocks)); };
        return TimeTerm{
            "pace of a warpgroup", 0,
            fmt::format("{}: {} of its statements and {} of waits for their results, those that overlap once",
                        text->of_waves(seconds, k_blocks, "K blocks"), clocks(core / own / warpgroups),
                        clocks(latency / own)),
            true};
    });
    return out;
}

TimeSum Simulator::WarpgroupWork::part(std::string_view name, double seconds) const {
    TimeSum out(text != nullptr);
    out.add(seconds, [&] { return TimeTerm{std::string(name), 0, text->of_waves(seconds, k_blocks, "K blocks"), true}; });
    return out;
}

/// The time of the units, and of warpgroups that each keep a pace.
TimeSum Simulator::together_at_pace(const ScheduledKernel& k, const WarpgroupWork& w, const TimeSum& pace) const {
    const double rest = w.core - w.unit - w.special;
    const TimeSum special = w.part("special functions", w.special), others = w.part("other instructions", rest);
    // A lone warpgroup overlaps only what its own threads do at a time. What the tensor cores sustain is what the power
    // limit leaves them. It does not bind where they stand still as long.
    if (warpgroups_beside(k) <= 1) {
        TimeSum in_turn = w.part(w.unit_name, w.unit * sustained_rate_of(machine_, "tensor"));
        in_turn.add(TimeSum::overlapped(beside({w.special, rest}), exponent_, {special, others}));
        in_turn.add(w.part("waits for own results", w.latency));
        return in_turn;
    }
    const double exponent = w.latency > 0 ? units_exponent : products_exponent;
    return TimeSum::overlapped(together({w.unit, w.special, rest, pace.seconds()}, exponent), exponent,
                               {w.part(w.unit_name, w.unit), special, others, pace});
}

/// Clocks of a lone warpgroup's iterations in the kernel's order, as a share of those of one statement after the other.
double Simulator::share_of_iteration_alone(const ScheduledKernel& k) const {
    double alone = 0, all = 0;
    for (const ScheduledLoop& loop : k.loops) {
        const auto body = modulo_body(k, loop, iteration_clocks(k, loop));
        const auto* found = std::get_if<LoopBody>(&body);
        if (!found) continue;
        const auto turns = static_cast<double>(iterations_of(k, loop).most);
        alone += turns * clocks_alone(found->body, order_of(k, loop, *found)),
            all += turns * clocks_one_by_one(found->body);
    }
    return all > 0 ? alone / all : 1;
}

double Simulator::interval(const ScheduledKernel& k, const IterationClocks& turn, double pace) const {
    WarpgroupWork w;
    for (const StatementClocks& c : turn.of_step) {
        w.unit += c.unit * turn.warpgroups, w.special += c.special * turn.warpgroups;
        w.core += (c.unit + c.own) * turn.warpgroups, w.latency += c.latency;
    }
    return together_at_pace(k, w, w.part("", pace)).seconds();
}

IterationClocks Simulator::iteration_clocks(const ScheduledKernel& k, const ScheduledLoop& loop) const {
    IterationClocks out{std::vector<StatementClocks>(k.steps.size()), warpgroups_beside(k)};
    std::vector<std::int64_t> tile;
    for (const Span& span : k.scope(loop.scope)) tile.push_back(span.tile);
    std::vector<double> latency(k.steps.size());
    for (const StepId s : k.steps.ids()) {
        const Step& step = k.steps[s];
        if (step.scope != loop.scope || step.atom < 0) continue;
        const Pipes pipes = compute_clocks(k, step, work_[at(step.atom)], tile);
        StatementClocks& c = out.of_step[s];
        const double core = beside({pipes.arithmetic, pipes.load, pipes.store, pipes.cache});
        c.unit = pipes.unit / out.warpgroups, c.own = (core - pipes.unit) / out.warpgroups;
        if (k.atom(step).kind != AtomKind::mma) c.own += (pipes.overhead + pipes.waits) / out.warpgroups;
        c.special = pipes.special() / out.warpgroups;
        latency[s] = latency_of_warpgroups(k, step, pipes.overhead);
    }
    leave_longest_chains(k, latency);
    StatementClocks sum;
    for (std::size_t s = 0; s < k.steps.size(); ++s) {
        StatementClocks& c = out.of_step[s];
        c.latency = latency[s], c.latency_beside = latency[s] * latency_left_ahead;
        sum.unit += c.unit, sum.own += c.own, sum.latency_beside += c.latency_beside;
    }
    out.least_ahead = sum.unit + sum.own - hidden_ahead * std::min(sum.unit, sum.own) + sum.latency_beside;
    return out;
}

/// Seconds of all iterations of a CTA, if only this operand's stages limited them. The producer issues the copy of a
/// tile as soon as its stage is free, and the tile arrives after `answer` and `copy`. Then the CTA goes through its
/// iteration from its wait for the tile to its release. As many tiles as there are stages are on this way at a time.
double Simulator::seconds_of_stages(const ScheduledKernel& k, const Moved& moved, double answer, double copy,
                                    const StepSeconds& steps) const {
    const double warpgroups = warpgroups_beside(k);
    const auto of_step = [&](int s) { return steps.core[at(s)] / warpgroups + steps.latency[at(s)]; };
    for (const ScheduledLoop& loop : k.loops) {
        if (loop.scope != k.steps[moved.step].scope) continue;
        double now = 0;  // seconds from the beginning of the iteration
        // From the wait to the release (`held`), and the iterations by which the tile that is waited for is ahead of
        // the one released (`ahead`).
        double held = 0, ahead = 0;
        for (const Node& node : loop.body) {
            if (const StepId* s = std::get_if<StepId>(&node)) {
                if (k.step(*s).atom >= 0) now += of_step(*s);
                if (k.operand_loaded(k.step(*s)) == moved.variable) held -= now, ahead += k.step(*s).ahead;
            } else if (const auto* run = std::get_if<FusedStatements>(&node)) {
                for (const int member : run->steps) now += of_step(member);
            } else if (const auto* settle = std::get_if<WaitGroup>(&node)) {
                for (const Release& freed : settle->frees)
                    if (freed.operand == moved.variable) held += now, ahead -= freed.ahead;
            }
        }
        held += ahead * now;
        return (answer + copy + held) / k.place(moved.variable).stages;
    }
    return 0;
}

/// Seconds for the states that a CTA leaves of one split tile and reads of another. They all cross the pipe above
/// shared memory, and stay in L2. Nothing else is computed meanwhile, as the states have the registers.
double Simulator::seconds_of_parts(const ScheduledKernel& k, const StreamK& cut, double workers) const {
    const double bytes = 4 * static_cast<double>(stream_k_values(k, cut));
    Moved read{0, false, false, bytes, 0}, written{0, true, false, bytes, 0};
    // One after the other: the first warp's flag, the states that it leaves, the flag once more, the second warp's
    // flag, the first one's flag, and those states.
    return bytes * (seconds_a_byte(core_level_, workers, read) + seconds_a_byte(core_level_, workers, written)) +
           (machine_.meeting_s.known() ? machine_.meeting_s.value
                                       : answers_of_parts * machine_.levels[core_level_ - 1].latency_s.value);
}

/// Other resident CTAs work meanwhile, so that a CTA's gap costs only its share of the SM.
double Simulator::clocks_between_groups(const ScheduledKernel& k) const {
    return (k.has_block_a_group() ? clocks_to_next_block : clocks_to_next_group) / blocks_a_core(machine_);
}

}  // namespace napkin
