#include "schedule/clocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "support/ids.hpp"

namespace napkin {
namespace {

constexpr std::size_t num_warps = 2;
/// Of each warp, how many of its steps are known to be done.
using Clock = std::array<int, num_warps>;

void take_in(Clock& a, const Clock& b) {
    for (std::size_t w = 0; w < num_warps; ++w) a[w] = std::max(a[w], b[w]);
}

class ClockRun {
public:
    ClockRun(const ScheduledKernel& kernel, const std::vector<std::int64_t>& turns) : kernel_(kernel), turns_(turns) {}

    std::string run() {
        for (std::int64_t group = 0; group < std::min<std::int64_t>(2, kernel_.num_groups()) && fault_.empty(); ++group) {
            walk(kernel_.body);
            ++group_turn_;
        }
        return fault_;
    }

private:
    struct Stage {
        int fills = 0;                      ///< copies into it so far
        Clock issued{};                     ///< what the last one's issuer knew
        std::int64_t turn = -1;             ///< whose tile it holds
        std::array<int, num_warps> seen{};  ///< copies that a warp has waited for
        std::array<int, num_warps> read{};  ///< the warp's step that read it last; 0: none has
    };

    [[nodiscard]] const std::string& name(VariableId id) const { return kernel_.variable(id).name; }
    void fail(std::string what) {
        if (fault_.empty()) fault_ = std::move(what);
    }
    Stage& stage(VariableId id, std::int64_t turn) {
        const int stages = kernel_.place(id).stages;
        std::vector<Stage>& all = stages_[id];
        all.resize(static_cast<std::size_t>(stages));
        return all[static_cast<std::size_t>(turn % stages)];
    }

    void synchronize() {
        Clock all{};
        for (const Clock& c : warps_) take_in(all, c);
        warps_.fill(all);
    }
    void fill(VariableId id, std::int64_t turn) {
        Stage& s = stage(id, turn);
        // One thread asks for a bulk copy, every warp for its own part of another one.
        const std::size_t issuers = kernel_.has_bulk_copies() ? 1 : num_warps;
        for (std::size_t w = 0; w < num_warps * issuers; ++w)
            if (s.read[w % num_warps] > warps_[w / num_warps][w % num_warps])
                fail(fmt::format("{} is copied over while a warp may still read it", name(id)));
        if (s.fills > s.seen[0])
            fail(fmt::format("{} is copied over before the copy before it is waited for", name(id)));
        ++s.fills;
        s.issued = warps_[0], s.turn = turn, s.read = {};
    }
    void wait(VariableId id, std::int64_t turn) {
        Stage& s = stage(id, turn);
        if (s.turn != turn) return fail(fmt::format("{} is waited for and was not asked for", name(id)));
        for (std::size_t w = 0; w < num_warps; ++w) take_in(warps_[w], s.issued), s.seen[w] = s.fills;
    }
    /// For a bulk copy. What threads copy themselves is done in order: a wait is for all operands of the scope up to this one, and all meet.
    void wait_for(const Step& s) {
        if (kernel_.has_bulk_copies())
            return wait(std::get<Load>(*s.statement).variable, turn_of(std::get<Load>(*s.statement).variable));
        for (const Step& before : kernel_.steps) {
            const auto* load = std::get_if<Load>(before.statement);
            if (load && before.scope == s.scope && kernel_.is_operand(load->variable))
                wait(load->variable, turn_of(load->variable));
            if (&before == &s) break;
        }
        synchronize();
    }
    void read(VariableId id, std::int64_t turn) {
        Stage& s = stage(id, turn);
        for (std::size_t w = 0; w < num_warps; ++w) {
            if (s.turn != turn || s.seen[w] != s.fills)
                fail(fmt::format("{} is read before its copy is waited for", name(id)));
            s.read[w] = ++warps_[w][w];
        }
    }

    [[nodiscard]] std::int64_t turn_of(VariableId id) const {
        const int scope = kernel_.layout(id).scope;
        const auto found = loop_turns_.find(scope);
        return scope == 0 || found == loop_turns_.end() ? group_turn_ : found->second;
    }
    [[nodiscard]] std::vector<VariableId> operands_in(int scope) const {
        std::vector<VariableId> out;
        for (const Step& s : kernel_.steps)
            if (const auto* load = std::get_if<Load>(s.statement);
                load && s.scope == scope && kernel_.is_operand(load->variable))
                out.push_back(load->variable);
        return out;
    }

    void step(const Step& s) {
        if (s.synchronizes) synchronize();
        const auto* load = std::get_if<Load>(s.statement);
        if (load && kernel_.is_operand(load->variable)) {
            if (s.scope == 0) fill(load->variable, group_turn_);
            if (s.waits) wait_for(s);
        }
        if (std::holds_alternative<Compute>(*s.statement))
            for (const Read* r : s.reads)
                if (kernel_.is_operand(r->array)) read(r->array, turn_of(r->array));
    }

    void loop(const LoopRef& ref) {
        const ScheduledLoop& l = kernel_.loop(ref);
        const std::vector<VariableId> operands = operands_in(l.scope);
        std::int64_t& turn = loop_turns_[l.scope];
        const std::int64_t last = turn + turns_[at(ref.loop)];
        const int ahead = operands.empty() ? 0 : kernel_.place(operands.front()).stages - 1;
        const auto fill_all = [&](std::int64_t t) {
            for (const VariableId v : operands)
                if (t < last) fill(v, t);
        };
        if (l.synchronizes_before) synchronize();
        for (int t = 0; t < ahead; ++t) fill_all(turn + t);
        while (turn < last) {
            if (l.synchronizes) synchronize();
            fill_all(turn + ahead);
            walk(l.body);
            ++turn;
        }
    }

    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const int* s = std::get_if<int>(&node)) step(kernel_.step(*s));
            if (const auto* run = std::get_if<Run>(&node))
                for (const int s : run->steps) step(kernel_.step(s));
            if (const auto* l = std::get_if<LoopRef>(&node)) loop(*l);
        }
    }

    const ScheduledKernel& kernel_;
    const std::vector<std::int64_t>& turns_;
    std::array<Clock, num_warps> warps_{};
    std::map<VariableId, std::vector<Stage>> stages_;
    std::map<int, std::int64_t> loop_turns_;  ///< by scope, over all groups
    std::int64_t group_turn_ = 0;
    std::string fault_;
};

}  // namespace

std::string operands_out_of_order(const ScheduledKernel& kernel) {
    int stages = 1;
    for (const Place& place : kernel.schedule.places) stages = std::max(stages, place.stages);
    std::vector<std::vector<std::int64_t>> choices;  // by loop
    for (const ScheduledLoop& l : kernel.loops) {
        const Turns turns = turns_of(kernel, l);
        std::vector<std::int64_t>& of_loop = choices.emplace_back();
        for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::min<std::int64_t>(2 * stages + 2, turns.most)})
            if (n >= turns.least && n <= turns.most && !contains(of_loop, n)) of_loop.push_back(n);
        if (of_loop.empty()) of_loop.push_back(turns.most);
    }
    std::vector<std::size_t> chosen(choices.size(), 0);
    while (true) {
        std::vector<std::int64_t> turns;
        for (std::size_t l = 0; l < choices.size(); ++l) turns.push_back(choices[l][chosen[l]]);
        if (std::string fault = ClockRun(kernel, turns).run(); !fault.empty()) return fault;
        std::size_t l = 0;
        while (l < chosen.size() && ++chosen[l] == choices[l].size()) chosen[l++] = 0;
        if (l == chosen.size()) return "";
    }
}

}  // namespace napkin
