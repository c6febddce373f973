// A chart as text, a line for every unit and a column for some clocks, and as JSON.
#include <fmt/format.h>

#include <cmath>

#include "steps/report.hpp"
#include "support/ids.hpp"
#include "support/json.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// What is done in two intervals of the steady state.
struct Shown {
    double begin = 0, end = 0;
    std::vector<const ChartRow*> rows;
    explicit Shown(const Chart& chart) : begin(chart.window), end(chart.window + 2 * chart.interval) {
        for (const ChartRow& r : chart.rows)
            if (r.end > r.begin && r.begin < end && r.end > begin) rows.push_back(&r);
    }
};

std::string clocks_text(double clocks) { return fmt::format("{:.4g}", clocks); }

/// The letter that stands for an operation.
char letter(std::size_t operation) {
    return static_cast<char>(operation < 26 ? 'A' + operation : 'a' + operation % 26);
}

}  // namespace

std::string to_string(const StreamChart& stream, const std::string& axis) {
    const Chart& chart = stream.chart;
    const ChartProgram& program = chart.program;
    constexpr int columns = 96;
    std::string out = fmt::format("\n  overlap over {}, clocks for {:.0f} rows of each of {} warpgroup{}\n", axis,
                                  stream.rows, program.num_warpgroups, program.num_warpgroups == 1 ? "" : "s");
    std::vector<std::string> issued, transfers;
    std::vector<std::size_t> letters(program.operations.size());
    std::size_t next = 0;
    for (std::size_t o = 0; o < program.operations.size(); ++o) {
        const ChartOperation& op = program.operations[o];
        if (op.clocks() == 0) continue;
        letters[o] = next++;
        std::vector<std::string> uses;
        for (const ChartUse& u : op.uses) uses.push_back(fmt::format("{} {}", u.unit, clocks_text(u.clocks)));
        issued.push_back(fmt::format("{} {}{} ({})", letter(letters[o]), op.name,
                                     op.ahead > 0 ? fmt::format(" {} ahead", op.ahead) : "", join(uses, ", ")));
        if (!op.is_transfer) continue;
        transfers.push_back(std::move(issued.back()) + (op.is_shared ? ", once for all" : ""));
        issued.pop_back();
    }
    out += "     issued in order: " + join(issued, ", ") + "\n";
    if (!transfers.empty()) out += "     beside them, as places are free: " + join(transfers, ", ") + "\n";
    const Shown shown(chart);
    const double column = (shown.end - shown.begin) / columns;
    out += fmt::format("     a column is {} clocks; two intervals of the steady state\n", clocks_text(column));
    std::vector<std::vector<std::string>> lines;
    for (const UnitShare& unit : chart.units) {
        const bool is_shared = all_of(program.operations, [&](const ChartOperation& o) {
            return o.is_shared || none_of(o.uses, [&](const ChartUse& u) { return u.unit == unit.unit; });
        });
        for (int w = 0; w < (is_shared ? 1 : program.num_warpgroups); ++w) {
            std::string line(columns, '.');
            for (const ChartRow* r : shown.rows) {
                if (r->warpgroup != w) continue;
                for (const ChartUse& use : program.operations[at(r->operation)].uses) {
                    if (use.unit != unit.unit || use.clocks == 0) continue;
                    const auto from = std::lround((r->begin - shown.begin) / column),
                               to = std::lround((r->begin + use.clocks - shown.begin) / column);
                    for (auto c = std::max(from, 0L); c < std::min<long>(to, columns); ++c)
                        line[at(c)] = letter(letters[at(r->operation)]);
                }
            }
            lines.push_back({w == 0 ? unit.unit : "", is_shared ? "all" : std::to_string(w), line});
        }
    }
    out += table(lines, {}, "     ");
    std::vector<std::vector<std::string>> shares{{"unit", "clocks", "busy", "room for overhead"}};
    for (const UnitShare& unit : chart.units)
        shares.push_back({unit.unit, clocks_text(unit.clocks), fmt::format("{:.1f}%", 100 * unit.busy),
                          fmt::format("{}{:.0f}%", unit.room >= most_room ? "over " : "", 100 * unit.room)});
    out += table(shares, {1, 2, 3}, "     ");
    out += fmt::format(
        "     interval {} clocks; no less than {} by units and {} by what waits for what; {} iteration{} in flight\n",
        clocks_text(chart.interval), clocks_text(chart.resource_bound), clocks_text(chart.recurrence_bound),
        chart.in_flight, chart.in_flight == 1 ? "" : "s");
    if (stream.tensor_flop_per_s > 0)
        out += fmt::format("     the tensor cores are busy {:.1f}% of it: {:.0f} TFLOP/s\n", 100 * stream.tensor_share,
                           stream.tensor_flop_per_s / 1e12);
    out += fmt::format("     {} binds\n", chart.bound_by);
    for (const std::string& step : chart.binds) out += "       " + step + "\n";
    return out;
}

nlohmann::ordered_json chart_json(const StreamChart& stream, const std::string& axis) {
    using Json = nlohmann::ordered_json;
    const Chart& chart = stream.chart;
    const auto name_of = [&](int o) { return chart.program.operations[at(o)].name; };
    Json out{{"stream", axis},
             {"rows_a_warpgroup", stream.rows},
             {"warpgroups", chart.program.num_warpgroups},
             {"interval_clocks", chart.interval},
             {"interval_without_overheads_clocks", chart.ideal_interval},
             {"resource_bound_clocks", chart.resource_bound},
             {"recurrence_bound_clocks", chart.recurrence_bound},
             {"iterations_in_flight", chart.in_flight},
             {"tensor_share", stream.tensor_share},
             {"tensor_flop_per_s", stream.tensor_flop_per_s},
             {"units", Json::array()},
             {"operations", Json::array()},
             {"bound_by", chart.bound_by},
             {"binds", chart.binds},
             {"window_clocks", 2 * chart.interval},
             {"rows", Json::array()},
             {"barriers", Json::array()}};
    for (const UnitShare& u : chart.units)
        out["units"].push_back({{"unit", u.unit},
                                {"clocks", u.clocks},
                                {"busy", u.busy},
                                {"busy_without_overheads", u.ideal_busy},
                                {"room_for_overhead", u.room}});
    for (const ChartOperation& o : chart.program.operations) {
        Json uses = Json::object(), needs = Json::array();
        for (const ChartUse& u : o.uses) uses[u.unit] = u.clocks;
        for (const ChartNeed& n : o.needs)
            needs.push_back({{"operation", name_of(n.operation)}, {"iterations_before", n.distance}, {"why", n.why}});
        out["operations"].push_back({{"operation", o.name},
                                     {"ahead", o.ahead},
                                     {"asynchronous", o.is_async},
                                     {"transfer", o.is_transfer},
                                     {"for_all_warpgroups", o.is_shared},
                                     {"clocks", std::move(uses)},
                                     {"needs", std::move(needs)}});
    }
    const Shown shown(chart);
    constexpr const char* causes[] = {"nothing", "unit", "need", "issue", "turn"};
    for (const ChartRow* r : shown.rows)
        for (const ChartUse& use : chart.program.operations[at(r->operation)].uses)
            out["rows"].push_back(
                {{"warpgroup", chart.program.operations[at(r->operation)].is_shared ? Json() : Json(r->warpgroup)},
                 {"unit", use.unit},
                 {"operation", name_of(r->operation)},
                 {"iteration", r->iteration},
                 {"begin", r->begin - shown.begin},
                 {"end", r->begin + use.clocks - shown.begin},
                 {"waited_for", causes[at(r->cause)]}});
    for (const ChartBarrier& b : chart.barriers)
        if (b.at >= shown.begin && b.at < shown.end)
            out["barriers"].push_back({{"at", b.at - shown.begin}, {"from", b.from}, {"to", b.to}});
    return out;
}

}  // namespace napkin
