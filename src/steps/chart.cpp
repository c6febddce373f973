// Runs a chart's program and reads the steady state off the run.
#include "steps/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "support/ids.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

// The steady state is averaged over a number of iterations that every short period divides.
constexpr int period = 24, num_iterations = 3 * period;
constexpr double slack = 1e-9;

/// Rows of one run, with or without a limit on who uses the units.
class ChartRun {
public:
    ChartRun(const ChartProgram& program, bool units_are_held)
        : program_(program), units_are_held_(units_are_held), groups_(at(program.num_warpgroups)) {
        for (const ChartOperation& o : program.operations) most_ahead_ = std::max(most_ahead_, o.ahead);
        for (Group& g : groups_) {
            g.trip = -most_ahead_;
            g.row_of.assign(program.operations.size() * num_iterations, -1);
        }
        for (int w = 0; w < program.num_warpgroups; ++w) go_on(w);
    }

    void run() {
        while (true) {
            int next = -1;
            ChartRow best;
            for (int w = 0; w < program_.num_warpgroups; ++w) {
                if (groups_[at(w)].trip >= num_iterations) continue;
                const auto row = ready(w);
                if (!row) continue;
                const bool sooner = next < 0 || row->begin < best.begin ||
                                    (row->begin == best.begin && row->iteration < best.iteration);
                if (sooner) next = w, best = *row;
            }
            if (next < 0) return;
            take(next, best);
        }
    }

    std::vector<ChartRow> rows;
    std::vector<ChartBarrier> barriers;

private:
    struct Group {
        int trip = 0, position = 0, turns = 0, handed = 0;
        double issued = 0;  ///< it issues nothing before this clock
        int issued_by = -1, last = -1;
        std::vector<int> row_of;  ///< by iteration and operation
    };
    struct Handed {
        double at = 0;
        int row = -1;
    };

    /// To the next operation that the trip has an iteration for. A turn ends where its last operation would be issued.
    void go_on(int w) {
        Group& g = groups_[at(w)];
        for (; g.trip < num_iterations; ++g.trip, g.position = 0)
            for (; at(g.position) < program_.operations.size(); ++g.position) {
                const int iteration = g.trip + program_.operations[at(g.position)].ahead;
                if (iteration >= 0 && iteration < num_iterations) return;
                if (!program_.turn.empty() && g.position == program_.turn.back()) hand_on(w);
            }
        hand_on(w);
    }

    [[nodiscard]] int row_of(const Group& g, int operation, int iteration) const {
        return g.row_of[at(iteration) * program_.operations.size() + at(operation)];
    }

    /// Its next operation where it could begin now; nothing where it is another warpgroup's turn and that has not got to its end.
    [[nodiscard]] std::optional<ChartRow> ready(int w) const {
        const Group& g = groups_[at(w)];
        const ChartOperation& o = program_.operations[at(g.position)];
        ChartRow row{w, g.position, g.trip + o.ahead, 0, 0, ChartCause::nothing, -1, {}};
        const auto wait = [&](double until, ChartCause cause, int after, const std::string& why) {
            if (until > row.begin) row.begin = until, row.cause = cause, row.after = after, row.why = why;
        };
        // Of causes at the same clock the first one is named: the unit, then what is read.
        if (units_are_held_)
            for (const ChartUse& use : o.uses)
                if (const auto held = held_.find(use.unit); held != held_.end())
                    wait(held->second.at, ChartCause::unit, held->second.row, {});
        for (const ChartNeed& need : o.needs) {
            if (row.iteration < need.distance) continue;
            const int on = row_of(g, need.operation, row.iteration - need.distance);
            wait(rows[at(on)].end, ChartCause::need, on, need.why);
        }
        wait(g.issued, ChartCause::issue, g.issued_by, {});
        if (!program_.turn.empty() && g.position == program_.turn.front() && units_are_held_ && program_.num_warpgroups > 1) {
            const std::int64_t turn = std::int64_t{g.turns} * program_.num_warpgroups + w;
            if (turn > 0) {
                if (static_cast<std::int64_t>(handed_.size()) < turn) return std::nullopt;
                wait(handed_[at(turn - 1)].at, ChartCause::turn, handed_[at(turn - 1)].row, {});
            }
        }
        row.end = row.begin + o.clocks();
        return row;
    }

    void take(int w, const ChartRow& row) {
        Group& g = groups_[at(w)];
        const ChartOperation& o = program_.operations[at(g.position)];
        const int id = static_cast<int>(rows.size());
        rows.push_back(row);
        g.last = id;
        g.row_of[at(row.iteration) * program_.operations.size() + at(row.operation)] = id;
        for (const ChartUse& use : o.uses)
            if (use.clocks > 0) held_[use.unit] = {row.begin + use.clocks, id};
        // An operation in a unit's queue is issued when what threads wait for is there, whoever holds the unit.
        double issue = g.issued;
        for (const ChartNeed& need : o.needs) {
            if (row.iteration < need.distance) continue;
            const ChartRow& on = rows[at(row_of(g, need.operation, row.iteration - need.distance))];
            const bool in_order = program_.operations[at(on.operation)].is_async && o.is_async;
            if (!in_order) issue = std::max(issue, on.end);
        }
        if (row.cause == ChartCause::turn) issue = row.begin;
        if (!o.is_async) issue = row.end;
        if (issue > g.issued) g.issued = issue, g.issued_by = id;
        if (!program_.turn.empty()) {
            if (row.operation == program_.turn.front()) ++g.turns;
            if (row.operation == program_.turn.back()) hand_on(w);
        }
        ++g.position;
        go_on(w);
    }

    void hand_on(int w) {
        Group& g = groups_[at(w)];
        if (g.handed == g.turns) return;
        ++g.handed;
        handed_.push_back({rows[at(g.last)].end, g.last});
        barriers.push_back({rows[at(g.last)].end, w, (w + 1) % program_.num_warpgroups});
    }

    const ChartProgram& program_;
    bool units_are_held_;
    int most_ahead_ = 0;
    std::vector<Group> groups_;
    std::map<std::string, Handed> held_;
    std::vector<Handed> handed_;
};

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

/// Backwards from the last row, each row's cause, until an operation of a warpgroup comes again: the cycle is what makes the interval.
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
        const std::string& name = program.operations[at(r.operation)].name;
        return program.num_warpgroups > 1 ? fmt::format("{} of {}", name, r.warpgroup) : name;
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
    std::reverse(out.begin(), out.end());
    return out;
}

/// Iterations of one warpgroup between the begin of their first operation and the end of their last one.
int in_flight(const std::vector<ChartRow>& rows) {
    std::map<int, std::pair<double, double>> spans;
    for (const ChartRow& r : rows) {
        if (r.warpgroup != 0 || r.end <= r.begin) continue;
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
    for (std::size_t o = 0; o < program.operations.size(); ++o)
        for (const ChartNeed& need : program.operations[o].needs) {
            const int later = program.operations[o].ahead - need.distance - program.operations[at(need.operation)].ahead;
            if (later > 0 || (later == 0 && at(need.operation) >= o)) out.push_back({static_cast<int>(o), need});
        }
    return out;
}

Chart run_chart(const ChartProgram& program) {
    Chart out;
    out.program = program;
    ChartRun run(program, true);
    run.run();
    out.rows = std::move(run.rows), out.barriers = std::move(run.barriers);
    if (out.rows.size() != program.operations.size() * at(program.num_warpgroups) * num_iterations)
        throw InternalError("warpgroups wait for each other for ever");
    out.interval = interval_of(out.rows);
    ChartProgram alone = program;
    alone.num_warpgroups = 1;
    ChartRun unlimited(alone, false);
    unlimited.run();
    out.recurrence_bound = interval_of(unlimited.rows);
    std::map<std::string, double> clocks;
    for (const ChartOperation& o : program.operations)
        for (const ChartUse& use : o.uses) clocks[use.unit] += use.clocks * program.num_warpgroups;
    for (const auto& [unit, of_unit] : clocks) {
        out.resource_bound = std::max(out.resource_bound, of_unit);
    }
    ChartProgram ideal = program;
    for (const auto& [unit, share] : program.overheads) ideal = with_overhead(std::move(ideal), unit, 0);
    out.ideal_interval = interval_of(ideal);
    for (const auto& [unit, of_unit] : clocks) {
        if (of_unit <= 0) continue;
        const auto overhead = program.overheads.find(unit);
        const double bare = of_unit / (1 + (overhead == program.overheads.end() ? 0 : overhead->second));
        out.units.push_back({unit, of_unit, of_unit / out.interval, bare / out.ideal_interval, room_of(program, unit)});
    }
    std::stable_sort(out.units.begin(), out.units.end(),
                     [](const UnitShare& a, const UnitShare& b) { return a.clocks > b.clocks; });
    out.window = done_with(out.rows, period);
    out.in_flight = in_flight(out.rows);
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
        known[{r.warpgroup, r.operation, r.iteration}] = &r;
        for (const ChartUse& use : program.operations[at(r.operation)].uses)
            if (use.clocks > 0) by_unit[use.unit].push_back({&r, r.begin + use.clocks});
    }
    for (auto& [unit, rows] : by_unit) {
        std::stable_sort(rows.begin(), rows.end(),
                         [](const auto& a, const auto& b) { return a.first->begin < b.first->begin; });
        for (std::size_t i = 1; i < rows.size(); ++i)
            if (rows[i].first->begin < rows[i - 1].second - slack)
                out.push_back(fmt::format("{} is used by {} and by {} at clock {:.3f}", unit,
                                          name_of(*rows[i - 1].first), name_of(*rows[i].first), rows[i].first->begin));
    }
    for (const ChartRow& r : chart.rows) {
        for (const ChartNeed& need : program.operations[at(r.operation)].needs) {
            if (r.iteration < need.distance) continue;
            const auto on = known.find({r.warpgroup, need.operation, r.iteration - need.distance});
            if (on == known.end() || r.begin < on->second->end - slack)
                out.push_back(fmt::format("{} begins at clock {:.3f}, before {} is done: {}", name_of(r), r.begin,
                                          program.operations[at(need.operation)].name, need.why));
        }
        // What threads run, they run one after the other.
        for (std::size_t o = 0; o < at(r.operation); ++o) {
            const int iteration = r.iteration - program.operations[at(r.operation)].ahead + program.operations[o].ahead;
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
