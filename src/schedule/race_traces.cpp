// The events of a scheduled kernel's warps, for each number of iterations that may show a fault.
#include <algorithm>
#include <map>
#include <vector>

#include "schedule/fragments.hpp"
#include "schedule/race_events.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Writes the trace of one warp through all CTA tiles.
class TraceWriter {
public:
    /// `is_idle`: none of the loops' K blocks are those of its own rows, where warpgroups have K blocks of their own.
    TraceWriter(const ScheduledKernel& kernel, const Accesses& touches, const std::vector<std::int64_t>& turns,
                std::size_t warp, bool is_idle)
        : kernel_(kernel), accesses_of_steps_(touches), turns_(turns), warp_(warp), is_idle_(is_idle) {}

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
            const std::int64_t number = box % kernel_.place(id).staging_tiles;
            if (s.staging_behind >= 0) add(Event::await_staging, -1, s.staging_behind);
            add(Event::write_staging, id, number);
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
        if (kernel_.rescale && &s == &kernel_.step(kernel_.rescale->weights)) run_again(s);
    }
    /// Where conditional rescaling moves the maximum, the weights are computed again from their operands, and waited
    /// for.
    void run_again(const Step& weights) {
        for (const StepId again : kernel_.rescale->again)
            for (const Read* r : kernel_.step(again).reads)
                if (kernel_.is_operand(r->variable()))
                    add(Event::read, r->variable(), iteration_of(r->variable(), weights.ahead));
    }

    /// A producer copies operands in the order of the loop's statements.
    [[nodiscard]] std::vector<const Step*> loads_in_order(const ScheduledLoop& l) const {
        std::vector<const Step*> out;
        for (const Node& node : l.body)
            if (const StepId* s = std::get_if<StepId>(&node); s && kernel_.loads_operand(kernel_.step(*s)))
                out.push_back(&kernel_.step(*s));
        return out;
    }

    void loop(const LoopId ref) {
        const ScheduledLoop& l = kernel_.loop(ref);
        if (!kernel_.on_tensor_cores()) {
            for (std::int64_t t = 0; t < turns_[at(ref)]; ++t) walk(l.body);
            return;
        }
        const std::vector<const Step*> operands = kernel_.producer_role() ? loads_in_order(l)
                                                                          : kernel_.operand_loads(l.scope);
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
        if (is_idle_ && !copies() && have_own_k_blocks(kernel_, l)) {
            walk(l.skipped);
            for (; turn < last; ++turn) pass_by(l);
            return;
        }
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

    /// A K block of other warpgroups: the warp waits for its operands and releases them.
    void pass_by(const ScheduledLoop& l) {
        for (const Step* load : kernel_.operand_loads(l.scope))
            if (load->waits) add(Event::await, kernel_.operand_loaded(*load), loop_iterations_.at(l.scope));
        for (const Step* load : kernel_.operand_loads(l.scope))
            if (load->acquires) add(Event::free, kernel_.operand_loaded(*load), loop_iterations_.at(l.scope));
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
    bool is_idle_;
    std::int64_t accesses_ = 0;
    std::map<int, std::int64_t> first_iterations_;  ///< by scope: the loop's first iteration in this CTA tile
    std::map<int, std::int64_t> loop_iterations_;   ///< by scope, over all CTA tiles
    std::int64_t group_iteration_ = 0;
    Trace out_;
};

std::optional<Fault> fault_of_run(const ScheduledKernel& kernel, const Accesses& touches,
                                  const std::vector<std::int64_t>& turns, std::size_t num_idle = 0) {
    std::vector<Trace> traces;
    for (std::size_t w = 0; w < (kernel.producer_role() ? block_warps : num_computing); ++w)
        traces.push_back(w > 0 && !kernel.on_tensor_cores() ? traces.front()
                                                            : TraceWriter(kernel, touches, turns, w, w < num_idle).run());
    if (kernel.in_cluster() && kernel.producer_role()) {
        traces.resize(most_blocks * block_warps);
        std::copy_n(traces.begin(), block_warps, traces.begin() + block_warps);
    }
    return first_fault(kernel, touches, std::move(traces));
}

}  // namespace

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

std::optional<Fault> first_race(const ScheduledKernel& kernel, const Accesses& touches) {
    for (const std::vector<std::int64_t>& turns : iterations_to_run(kernel))
        if (auto fault = fault_of_run(kernel, touches, turns)) return fault;
    return std::nullopt;
}

bool is_race_free(const ScheduledKernel& kernel, const Accesses& touches, std::vector<std::int64_t>& suspect) {
    const std::vector<std::vector<std::int64_t>> all = iterations_to_run(kernel);
    const bool is_suspect_run = contains(all, suspect);
    if (is_suspect_run && fault_of_run(kernel, touches, suspect)) return false;
    for (const std::vector<std::int64_t>& turns : all)
        if (!(is_suspect_run && turns == suspect) && fault_of_run(kernel, touches, turns)) {
            suspect = turns;
            return false;
        }
    return true;
}

bool is_race_free_beside_idle(const ScheduledKernel& kernel, const Accesses& touches) {
    if (none_of(kernel.loops, [&](const ScheduledLoop& l) { return have_own_k_blocks(kernel, l); })) return true;
    for (const std::vector<std::int64_t>& turns : iterations_to_run(kernel))
        for (std::size_t num_idle = 1; num_idle <= num_computing; ++num_idle)
            if (fault_of_run(kernel, touches, turns, num_idle)) return false;
    return true;
}

std::string race_text(const ScheduledKernel& kernel) {
    const auto fault = first_race(kernel, accesses_of(kernel));
    return fault ? fault->what : "";
}

}  // namespace napkin
