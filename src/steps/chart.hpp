#pragma once
// The overlap chart of a stream (paper.md §6, Figs 34 to 37). Warpgroups run an iteration's operations on the units of
// a core, and each unit serves one warpgroup at a time. The chart is the result of such a run. All of it is data, and
// nothing here knows what an operation computes.
//
// A warpgroup issues its operations in order. Operations of threads keep it busy until they are done. Operations of the
// tensor cores are asynchronous, so it only starts them. Transfers between memory and the core have no order of issue.
// Each begins as soon as what it needs is done and its pipe is free.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace napkin {

struct ChartUse {
    std::string unit;
    double clocks = 0;
};

/// What must have come before an operation: another of the same warpgroup, `distance` iterations before.
struct ChartNeed {
    int operation = -1;
    int distance = 0;
    std::string why;         ///< "it reads S", "S_smem has one place"
    std::string place = {};  ///< the variable of which another place would meet it earlier
};

struct ChartOperation {
    std::string name;
    std::vector<ChartUse> uses;  ///< at the same time; none takes no time
    bool is_async = false;       ///< the warpgroup goes on while it runs
    bool is_transfer = false;    ///< in no warpgroup's order of issue
    bool is_shared = false;  ///< of a transfer: done once for all warpgroups, and needs what it needs of each of them
    std::vector<ChartNeed> needs;
    int ahead = 0;  ///< iterations by which it is issued before the loop comes to them
    [[nodiscard]] double clocks() const;
};

/// Operations in the order in which a warpgroup issues them. Those of `turn` are issued in turns (ping-pong): one
/// warpgroup issues all of them, in their order, then the next does.
struct ChartProgram {
    std::vector<ChartOperation> operations;
    int num_warpgroups = 1;
    std::vector<int> turn;
    std::map<std::string, double> overheads;  ///< shares that the clocks of a unit have in them besides its operations
};

/// A need that the order of issue cannot meet, since what is waited for is issued later. It is a need of the operation
/// or of a transfer that the operation waits for.
struct ChartDeadlock {
    int operation = -1;
    ChartNeed need;
};
std::vector<ChartDeadlock> deadlocks(const ChartProgram& program);

/// Why an operation did not begin before it did.
enum class ChartCause : std::uint8_t { nothing, unit, need, issue, turn };

struct ChartRow {
    int warpgroup = 0, operation = 0, iteration = 0;  ///< of a shared transfer the first warpgroup
    double begin = 0, end = 0;
    ChartCause cause = ChartCause::nothing;
    int after = -1;   ///< the row whose end, or issue, is the cause
    std::string why;  ///< of a need
};

/// One warpgroup hands its turn at the units to the next (ping-pong).
struct ChartBarrier {
    double at = 0;
    int from = 0, to = 0;
};

inline constexpr double most_room = 16;
struct UnitShare {
    std::string unit;
    double clocks = 0;      ///< of an interval
    double busy = 0;        ///< the share of the interval
    double ideal_busy = 0;  ///< were there no overheads
    /// overhead that leaves the interval what it is without the unit's, as a share of its operations; at most most_room
    double room = 0;
};

struct Chart {
    ChartProgram program;
    std::vector<ChartRow> rows;  ///< all that was run, by begin
    std::vector<ChartBarrier> barriers;
    double ideal_interval = 0;  ///< without overheads
    double interval = 0;        ///< clocks from an iteration of all warpgroups to the next one, in the steady state
    double resource_bound = 0, recurrence_bound = 0;  ///< the interval is no shorter than either
    double window = 0;                                ///< clock at which the steady state is looked at
    int in_flight = 0;                                ///< iterations of a warpgroup under way at a time, at most
    std::vector<UnitShare> units;                     ///< busiest first
    std::string bound_by;                             ///< a unit, or what else makes the interval
    std::vector<std::string> binds;                   ///< what waits for what, around the cycle that makes the interval
};

/// Whether warpgroups that take turns all come to the end. Pre: no deadlocks.
bool comes_to_its_end(const ChartProgram& program);

/// Clocks from an iteration of all warpgroups to the next one; none where they do not all come to the end. Pre: no
/// deadlocks.
std::optional<double> steady_interval(const ChartProgram& program);
/// What the busiest unit takes for an iteration of all warpgroups: no order of issue has a shorter interval.
double least_interval(const ChartProgram& program);

/// Pre: no deadlocks, and it comes to its end. Whoever can begin first does; of several the one of the earliest
/// iteration, then the first warpgroup.
Chart run_chart(const ChartProgram& program);

/// The rules that the rows break: a unit is one warpgroup's at a time, and nothing begins before what it needs is done
/// or before it is issued.
std::vector<std::string> verify(const Chart& chart);

}  // namespace napkin
