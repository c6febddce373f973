// Runs a chart's program and reads the steady state off the run.
#include "steps/chart.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

// The steady state is averaged over a number of iterations that every short period divides.
constexpr int period = 24, num_iterations = 3 * period;
constexpr double slack = 1e-9;

/// Rows of one run, with or without a limit on who uses the units.
class ChartRun {
public:
    ChartRun(const ChartProgram& program, bool units_are_held)
        : program_(program),
          units_are_held_(units_are_held),
          groups_(at(program.num_warpgroups)),
          row_of_(at(program.num_warpgroups), std::vector<int>(program.operations.size() * num_iterations, -1)) {
        std::vector<int> issued;
        for (std::size_t o = 0; o < program.operations.size(); ++o) {
            const ChartOperation& operation = program.operations[o];
            most_ahead_ = std::max(most_ahead_, operation.ahead);
            if (!operation.is_transfer) issued.push_back(static_cast<int>(o));
        }
        // Units by number: a run looks at them for every operation that could begin.
        std::map<std::string, std::size_t> units;
        for (const ChartOperation& o : program.operations) {
            uses_.emplace_back();
            for (const ChartUse& use : o.uses)
                uses_.back().emplace_back(units.try_emplace(use.unit, units.size()).first->second, use.clocks);
            clocks_.push_back(o.clocks());
        }
        held_.resize(units.size());
        for (int w = 0; w < program.num_warpgroups; ++w) groups_[at(w)].warpgroup = w, groups_[at(w)].order = issued;
        // Every transfer is a queue of its own.
        for (std::size_t o = 0; o < program.operations.size(); ++o)
            for (int w = 0;
                 program.operations[o].is_transfer && w < (program.operations[o].is_shared ? 1 : program.num_warpgroups);
                 ++w) {
                groups_.emplace_back();
                groups_.back().warpgroup = w, groups_.back().order = {static_cast<int>(o)};
            }
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            groups_[g].trip = is_issued(g) ? -most_ahead_ : 0;
            if (groups_[g].order.empty()) groups_[g].trip = num_iterations;
            go_on(g);
        }
    }

    void run() {
        while (true) {
            std::size_t next = groups_.size();
            Start best;
            for (std::size_t g = 0; g < groups_.size(); ++g) {
                if (groups_[g].trip >= num_iterations) continue;
                const auto start = ready(g);
                if (!start) continue;
                const bool sooner = next == groups_.size() || start->begin < best.begin ||
                                    (start->begin == best.begin && start->iteration < best.iteration);
                if (sooner) next = g, best = *start;
            }
            if (next == groups_.size()) return;
            take(next, best);
        }
    }

    std::vector<ChartRow> rows;
    std::vector<ChartBarrier> barriers;

private:
    /// What issues operations in order: a warpgroup, or a transfer's queue.
    struct Group {
        int warpgroup = 0;
        std::vector<int> order;
        int trip = 0, position = 0, turns = 0, handed = 0;
        double issued = 0;  ///< it issues nothing before this clock
        int issued_by = -1, last = -1;
    };
    struct Handed {
        double at = 0;
        int row = -1;
    };
    /// When a group's next operation could begin, and what keeps it until then.
    struct Start {
        int iteration = 0;
        double begin = 0;
        ChartCause cause = ChartCause::nothing;
        int after = -1;
        const ChartNeed* need = nullptr;
    };

    /// Warpgroups stand before the transfers.
    [[nodiscard]] bool is_issued(std::size_t g) const { return g < at(program_.num_warpgroups); }
    [[nodiscard]] bool is_ping_pong(std::size_t g) const { return is_issued(g) && !program_.turn.empty(); }
    [[nodiscard]] int operation(const Group& g) const { return g.order[at(g.position)]; }

    /// To the next operation that the trip has an iteration for. A turn ends where its last operation would be issued.
    void go_on(std::size_t id) {
        Group& g = groups_[id];
        for (; g.trip < num_iterations; ++g.trip, g.position = 0)
            for (; at(g.position) < g.order.size(); ++g.position) {
                const int iteration = g.trip + program_.operations[at(operation(g))].ahead;
                if (iteration >= 0 && iteration < num_iterations) return;
                if (is_ping_pong(id) && operation(g) == program_.turn.back()) hand_on(id);
            }
        if (is_ping_pong(id)) hand_on(id);
    }

    [[nodiscard]] int row_of(int warpgroup, int operation, int iteration) const {
        return row_of_[at(warpgroup)][at(iteration) * program_.operations.size() + at(operation)];
    }
    /// The warpgroups whose operations an operation needs: a shared transfer, those of all.
    [[nodiscard]] std::pair<int, int> needed_of(const ChartOperation& o, int warpgroup) const {
        return o.is_shared ? std::pair{0, program_.num_warpgroups} : std::pair{warpgroup, warpgroup + 1};
    }

    /// Its next operation where it could begin now; nothing where it is another warpgroup's turn and that has not got
    /// to its end, or what is needed has not begun.
    [[nodiscard]] std::optional<Start> ready(std::size_t id) const {
        const Group& g = groups_[id];
        const int number = operation(g);
        const ChartOperation& o = program_.operations[at(number)];
        Start start{.iteration = g.trip + o.ahead};
        const auto wait = [&](double until, ChartCause cause, int after, const ChartNeed* need = nullptr) {
            if (until > start.begin) start.begin = until, start.cause = cause, start.after = after, start.need = need;
        };
        // The first of several causes at the same clock is named: the unit, then what is read.
        if (units_are_held_)
            for (const auto& [unit, clocks] : uses_[at(number)])
                if (held_[unit].row >= 0) wait(held_[unit].at, ChartCause::unit, held_[unit].row);
        for (const ChartNeed& need : o.needs) {
            if (start.iteration < need.distance) continue;
            for (auto [w, end] = needed_of(o, g.warpgroup); w < end; ++w) {
                const int on = row_of(w, need.operation, start.iteration - need.distance);
                if (on < 0) return std::nullopt;
                wait(rows[at(on)].end, ChartCause::need, on, &need);
            }
        }
        wait(g.issued, ChartCause::issue, g.issued_by);
        if (is_ping_pong(id) && number == program_.turn.front() && units_are_held_ && program_.num_warpgroups > 1) {
            const std::int64_t turn = std::int64_t{g.turns} * program_.num_warpgroups + g.warpgroup;
            if (turn > 0) {
                if (static_cast<std::int64_t>(handed_.size()) < turn) return std::nullopt;
                wait(handed_[at(turn - 1)].at, ChartCause::turn, handed_[at(turn - 1)].row);
            }
        }
        return start;
    }

    void take(std::size_t id, const Start& start) {
        Group& g = groups_[id];
        const int issued = operation(g);
        const ChartOperation& o = program_.operations[at(issued)];
        const int number = static_cast<int>(rows.size());
        rows.push_back({g.warpgroup, issued, start.iteration, start.begin, start.begin + clocks_[at(issued)],
                        start.cause, start.after, start.need ? start.need->why : ""});
        const ChartRow& row = rows.back();
        g.last = number;
        for (auto [w, end] = needed_of(o, g.warpgroup); w < end; ++w)
            row_of_[at(w)][at(row.iteration) * program_.operations.size() + at(row.operation)] = number;
        for (const auto& [unit, clocks] : uses_[at(issued)])
            if (clocks > 0) held_[unit] = {row.begin + clocks, number};
        // An operation in a unit's queue is issued when what threads wait for is there, whoever holds the unit.
        double issue = g.issued;
        for (const ChartNeed& need : o.needs) {
            if (row.iteration < need.distance || !is_issued(id)) continue;
            const ChartRow& on = rows[at(row_of(g.warpgroup, need.operation, row.iteration - need.distance))];
            const ChartOperation& needed = program_.operations[at(on.operation)];
            const bool in_order = needed.is_async && !needed.is_transfer && o.is_async;
            if (!in_order) issue = std::max(issue, on.end);
        }
        if (row.cause == ChartCause::turn) issue = row.begin;
        if (!o.is_async) issue = row.end;
        if (issue > g.issued) g.issued = issue, g.issued_by = number;
        if (is_ping_pong(id)) {
            if (row.operation == program_.turn.front()) ++g.turns;
            if (row.operation == program_.turn.back()) hand_on(id);
        }
        ++g.position;
        go_on(id);
    }

    void hand_on(std::size_t id) {
        Group& g = groups_[id];
        if (g.handed == g.turns) return;
        ++g.handed;
        handed_.push_back({rows[at(g.last)].end, g.last});
        barriers.push_back({rows[at(g.last)].end, g.warpgroup, (g.warpgroup + 1) % program_.num_warpgroups});
    }

    const ChartProgram& program_;
    bool units_are_held_;
    int most_ahead_ = 0;
    std::vector<Group> groups_;                                      ///< the warpgroups, then transfers
    std::vector<std::vector<int>> row_of_;                           ///< of warpgroups, by iteration and operation
    std::vector<std::vector<std::pair<std::size_t, double>>> uses_;  ///< of operations: units and clocks
    std::vector<double> clocks_;                                     ///< of operations
    std::vector<Handed> held_;                                       ///< units
    std::vector<Handed> handed_;
};

/// How often an operation runs in an iteration of all warpgroups.
int times_of(const ChartProgram& program, const ChartOperation& o) { return o.is_shared ? 1 : program.num_warpgroups; }

/// The clock at which all warpgroups are done with an iteration.
double done_with(const std::vector<ChartRow>& rows, int iteration) {
    double end = 0;
    for (const ChartRow& r : rows)
        if (r.iteration == iteration) end = std::max(end, r.end);
    return end;
}
double interval_of(const std::vector<ChartRow>& rows) {
    // The last iterations run without those behind them.
    return (done_with(rows, 2 * period) - done_with(rows, period)) / period;
}

double interval_of(const ChartProgram& program) {
    ChartRun run(program, true);
    run.run();
    return interval_of(run.rows);
}

/// The program with another overhead of one unit.
ChartProgram with_overhead(ChartProgram program, const std::string& unit, double share) {
    double& overhead = program.overheads[unit];
    for (ChartOperation& o : program.operations)
        for (ChartUse& use : o.uses)
            if (use.unit == unit) use.clocks *= (1 + share) / (1 + overhead);
    overhead = share;
    return program;
}

double room_of(const ChartProgram& program, const std::string& unit) {
    const double interval = interval_of(with_overhead(program, unit, 0));
    const auto holds = [&](double share) {
        return interval_of(with_overhead(program, unit, share)) <= interval * (1 + 1e-6);
    };
    if (holds(most_room)) return most_room;
    double low = 0, high = most_room;
    for (int i = 0; i < 18; ++i) {
        const double middle = (low + high) / 2;
        (holds(middle) ? low : high) = middle;
    }
    return low;
}

/// Why a row did not begin earlier.
std::string reason(const ChartProgram& program, const std::vector<ChartRow>& rows, const ChartRow& r) {
    switch (r.cause) {
        case ChartCause::unit:
            for (const ChartUse& a : program.operations[at(r.operation)].uses)
                for (const ChartUse& b : program.operations[at(rows[at(r.after)].operation)].uses)
                    if (a.unit == b.unit && rows[at(r.after)].begin + b.clocks == r.begin) return a.unit + " is held";
            break;
        case ChartCause::need: return r.why;
        case ChartCause::issue: return "issued in order";
        case ChartCause::turn: return "takes its turn";
        case ChartCause::nothing: break;
    }
    return "";
}

/// Backwards from the last row, each row's cause, until an operation of a warpgroup comes again: the cycle is what
/// makes the interval.
std::vector<std::string> cycle(const ChartProgram& program, const std::vector<ChartRow>& rows) {
    std::vector<int> path;
    std::map<std::pair<int, int>, std::size_t> seen;
    int row = -1;
    for (std::size_t r = 0; r < rows.size(); ++r)
        if (rows[r].iteration == 2 * period && (row < 0 || rows[r].end > rows[at(row)].end)) row = static_cast<int>(r);
    std::size_t from = 0;
    while (row >= 0) {
        const ChartRow& r = rows[at(row)];
        const auto [known, is_new] = seen.try_emplace({r.warpgroup, r.operation}, path.size());
        if (!is_new) {
            from = known->second;
            break;
        }
        path.push_back(row);
        row = r.after;
    }
    std::vector<std::string> out;
    const auto name_of = [&](const ChartRow& r) {
        const auto& [name, is_shared] = std::tie(program.operations[at(r.operation)].name,
                                                 program.operations[at(r.operation)].is_shared);
        return program.num_warpgroups > 1 && !is_shared ? fmt::format("{} of {}", name, r.warpgroup) : name;
    };
    // What takes no time stands for what it waits for.
    for (std::size_t i = from; i < path.size(); ++i) {
        const ChartRow& waits = rows[at(path[i])];
        if (waits.end <= waits.begin) continue;
        const ChartRow* last = &waits;
        while (last->after >= 0 && rows[at(last->after)].end <= rows[at(last->after)].begin)
            last = &rows[at(last->after)];
        if (last->after < 0) continue;
        out.push_back(fmt::format("{} after {}: {}", name_of(waits), name_of(rows[at(last->after)]),
                                  reason(program, rows, *last)));
    }
    reverse(out);
    return out;
}

/// Iterations of one warpgroup between the begin of their first operation and the end of their last one. Transfers that
/// run ahead are none.
int in_flight(const ChartProgram& program, const std::vector<ChartRow>& rows) {
    std::map<int, std::pair<double, double>> spans;
    for (const ChartRow& r : rows) {
        if (r.warpgroup != 0 || r.end <= r.begin || program.operations[at(r.operation)].is_transfer) continue;
        const auto [span, is_new] = spans.try_emplace(r.iteration, r.begin, r.end);
        span->second = {std::min(span->second.first, r.begin), std::max(span->second.second, r.end)};
    }
    int most = 0;
    for (const auto& [i, a] : spans) {
        int n = 0;
        for (const auto& [j, b] : spans) n += b.first <= a.first + slack && a.first + slack < b.second;
        most = std::max(most, n);
    }
    return most;
}

}  // namespace

double ChartOperation::clocks() const {
    double longest = 0;
    for (const ChartUse& use : uses) longest = std::max(longest, use.clocks);
    return longest;
}

std::vector<ChartDeadlock> deadlocks(const ChartProgram& program) {
    std::vector<ChartDeadlock> out;
    const auto look = [&](const auto& self, std::size_t o, const ChartNeed& need, int distance,
                          std::vector<int> transfers) -> void {
        const ChartOperation &waits = program.operations[o], &on = program.operations[at(need.operation)];
        distance += need.distance;
        if (on.is_transfer) {
            // It waits for what the transfer waits for.
            if (contains(transfers, need.operation)) return;
            transfers.push_back(need.operation);
            for (const ChartNeed& further : on.needs) self(self, o, further, distance, transfers);
            return;
        }
        const int later = waits.ahead - distance - on.ahead;
        if (later > 0 || (later == 0 && at(need.operation) >= o)) out.push_back({static_cast<int>(o), need});
    };
    for (std::size_t o = 0; o < program.operations.size(); ++o)
        if (!program.operations[o].is_transfer)
            for (const ChartNeed& need : program.operations[o].needs) look(look, o, need, 0, {});
    return out;
}

namespace {
bool is_whole(const ChartProgram& program, const std::vector<ChartRow>& rows) {
    const int times = sum<int>(program.operations, [&](const ChartOperation& o) { return times_of(program, o); });
    return rows.size() == at(times) * num_iterations;
}
double most_clocks(const std::map<std::string, double>& units) {
    double most = 0;
    for (const auto& [unit, clocks] : units) most = std::max(most, clocks);
    return most;
}
std::map<std::string, double> unit_clocks(const ChartProgram& program) {
    std::map<std::string, double> out;
    for (const ChartOperation& o : program.operations)
        for (const ChartUse& use : o.uses) out[use.unit] += use.clocks * times_of(program, o);
    return out;
}
}  // namespace

bool comes_to_its_end(const ChartProgram& program) {
    ChartRun run(program, true);
    run.run();
    return is_whole(program, run.rows);
}

std::optional<double> steady_interval(const ChartProgram& program) {
    ChartRun run(program, true);
    run.run();
    if (!is_whole(program, run.rows)) return std::nullopt;
    return interval_of(run.rows);
}

double least_interval(const ChartProgram& program) { return most_clocks(unit_clocks(program)); }

Chart run_chart(const ChartProgram& program) {
    if (!comes_to_its_end(program)) throw InternalError("warpgroups wait for each other for ever");
    Chart out;
    out.program = program;
    ChartRun run(program, true);
    run.run();
    out.rows = std::move(run.rows), out.barriers = std::move(run.barriers);
    out.interval = interval_of(out.rows);
    ChartProgram alone = program;
    alone.num_warpgroups = 1;
    ChartRun unlimited(alone, false);
    unlimited.run();
    out.recurrence_bound = interval_of(unlimited.rows);
    const std::map<std::string, double> clocks = unit_clocks(program);
    out.resource_bound = most_clocks(clocks);
    ChartProgram ideal = program;
    for (const auto& [unit, share] : program.overheads) ideal = with_overhead(std::move(ideal), unit, 0);
    out.ideal_interval = interval_of(ideal);
    for (const auto& [unit, of_unit] : clocks) {
        if (of_unit <= 0) continue;
        const double bare = of_unit / (1 + value_or(program.overheads, unit, 0));
        out.units.push_back({unit, of_unit, of_unit / out.interval, bare / out.ideal_interval, room_of(program, unit)});
    }
    stable_sort(out.units, [](const UnitShare& a, const UnitShare& b) { return a.clocks > b.clocks; });
    out.window = done_with(out.rows, period);
    out.in_flight = in_flight(program, out.rows);
    out.binds = cycle(program, out.rows);
    const auto is_bound = [&](double bound) { return out.interval <= bound * (1 + 1e-6); };
    out.bound_by = is_bound(out.resource_bound) && !out.units.empty() ? out.units.front().unit
                   : is_bound(out.recurrence_bound)                   ? "what waits for what"
                                                    : "the order in which warpgroups come to the units";
    return out;
}

std::vector<std::string> verify(const Chart& chart) {
    std::vector<std::string> out;
    const ChartProgram& program = chart.program;
    const auto name_of = [&](const ChartRow& r) {
        return fmt::format("{} of iteration {} and warpgroup {}", program.operations[at(r.operation)].name, r.iteration,
                           r.warpgroup);
    };
    std::map<std::string, std::vector<std::pair<const ChartRow*, double>>> by_unit;
    std::map<std::array<int, 3>, const ChartRow*> known;
    for (const ChartRow& r : chart.rows) {
        const ChartOperation& o = program.operations[at(r.operation)];
        for (int w = 0; w < program.num_warpgroups; ++w)
            if (w == r.warpgroup || o.is_shared) known[{w, r.operation, r.iteration}] = &r;
        for (const ChartUse& use : o.uses)
            if (use.clocks > 0) by_unit[use.unit].push_back({&r, r.begin + use.clocks});
    }
    for (auto& [unit, rows] : by_unit) {
        stable_sort(rows, [](const auto& a, const auto& b) { return a.first->begin < b.first->begin; });
        for (std::size_t i = 1; i < rows.size(); ++i)
            if (rows[i].first->begin < rows[i - 1].second - slack)
                out.push_back(fmt::format("{} is used by {} and by {} at clock {:.3f}", unit,
                                          name_of(*rows[i - 1].first), name_of(*rows[i].first), rows[i].first->begin));
    }
    for (const ChartRow& r : chart.rows) {
        const ChartOperation& operation = program.operations[at(r.operation)];
        for (const ChartNeed& need : operation.needs)
            for (int w = 0; w < program.num_warpgroups; ++w) {
                if (r.iteration < need.distance || (w != r.warpgroup && !operation.is_shared)) continue;
                const auto on = known.find({w, need.operation, r.iteration - need.distance});
                if (on == known.end() || r.begin < on->second->end - slack)
                    out.push_back(fmt::format("{} begins at clock {:.3f}, before {} is done: {}", name_of(r), r.begin,
                                              program.operations[at(need.operation)].name, need.why));
            }
        if (operation.is_transfer) continue;
        // What threads run, they run one after the other.
        for (std::size_t o = 0; o < at(r.operation); ++o) {
            const int iteration = r.iteration - operation.ahead + program.operations[o].ahead;
            const auto before = known.find({r.warpgroup, static_cast<int>(o), iteration});
            if (before == known.end() || program.operations[o].is_async) continue;
            if (r.begin < before->second->end - slack)
                out.push_back(fmt::format("{} begins at clock {:.3f}, before {} is issued and done", name_of(r),
                                          r.begin, program.operations[o].name));
        }
    }
    return out;
}

}  // namespace napkin
