// A chart as a report: a line for every unit and a column for some clocks; for programs each thing that is done.
#include <fmt/format.h>

#include <cmath>

#include "steps/report.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using report::Json;
using report::Section;
using report::Value;

constexpr int chart_columns = 96;

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

/// The letter that stands for an operation: those that take clocks have one each, in their order.
char letter(const ChartProgram& program, int operation) {
    int before = 0;
    for (int o = 0; o < operation; ++o) before += program.operations[at(o)].clocks() != 0;
    return static_cast<char>(before < 26 ? 'A' + before : 'a' + before % 26);
}

void add_order(Section& out, const ChartProgram& program) {
    std::vector<std::string> issued, transfers;
    for (std::size_t o = 0; o < program.operations.size(); ++o) {
        const ChartOperation& op = program.operations[o];
        if (op.clocks() == 0) continue;
        std::vector<std::string> uses;
        for (const ChartUse& u : op.uses) uses.push_back(fmt::format("{} {}", u.unit, clocks_text(u.clocks)));
        const std::string text = fmt::format("{} {}{} ({})", letter(program, static_cast<int>(o)), op.name,
                                             op.ahead > 0 ? fmt::format(" {} ahead", op.ahead) : "", join(uses, ", "));
        if (op.is_transfer)
            transfers.push_back(text + (op.is_shared ? ", once for all" : ""));
        else
            issued.push_back(text);
    }
    out.text("issued in order: " + join(issued, ", "));
    if (!transfers.empty()) out.text("beside them, as places are free: " + join(transfers, ", "));
}

/// Two intervals, each unit's for every warpgroup.
report::Table lines(const Chart& chart, const Shown& shown) {
    const ChartProgram& program = chart.program;
    const double column = (shown.end - shown.begin) / chart_columns;
    report::Table out{"", "", std::vector<report::Column>(3), {}};
    for (const UnitShare& unit : chart.units) {
        const bool is_shared = all_of(program.operations, [&](const ChartOperation& o) {
            return o.is_shared || none_of(o.uses, [&](const ChartUse& u) { return u.unit == unit.unit; });
        });
        for (int w = 0; w < (is_shared ? 1 : program.num_warpgroups); ++w) {
            std::string line(chart_columns, '.');
            for (const ChartRow* r : shown.rows) {
                if (r->warpgroup != w) continue;
                for (const ChartUse& use : program.operations[at(r->operation)].uses) {
                    if (use.unit != unit.unit || use.clocks == 0) continue;
                    const auto from = std::lround((r->begin - shown.begin) / column),
                               to = std::lround((r->begin + use.clocks - shown.begin) / column);
                    for (auto c = std::max(from, 0L); c < std::min<long>(to, chart_columns); ++c)
                        line[at(c)] = letter(program, r->operation);
                }
            }
            out.rows.push_back({report::shown(w == 0 ? unit.unit : ""),
                                report::shown(is_shared ? "all" : std::to_string(w)), report::shown(line)});
        }
    }
    return out;
}

void add_for_programs(Section& out, const Chart& chart, const Shown& shown) {
    const auto name_of = [&](int o) { return chart.program.operations[at(o)].name; };
    Json operations = Json::array(), rows = Json::array(), barriers = Json::array();
    for (const ChartOperation& o : chart.program.operations) {
        Json uses = Json::object(), needs = Json::array();
        for (const ChartUse& u : o.uses) uses[u.unit] = u.clocks;
        for (const ChartNeed& n : o.needs)
            needs.push_back({{"operation", name_of(n.operation)}, {"iterations_before", n.distance}, {"why", n.why}});
        operations.push_back({{"operation", o.name},
                              {"ahead", o.ahead},
                              {"asynchronous", o.is_async},
                              {"transfer", o.is_transfer},
                              {"for_all_warpgroups", o.is_shared},
                              {"clocks", std::move(uses)},
                              {"needs", std::move(needs)}});
    }
    constexpr const char* causes[] = {"nothing", "unit", "need", "issue", "turn"};
    for (const ChartRow* r : shown.rows)
        for (const ChartUse& use : chart.program.operations[at(r->operation)].uses)
            rows.push_back({{"warpgroup", chart.program.operations[at(r->operation)].is_shared ? Json() : Json(r->warpgroup)},
                            {"unit", use.unit},
                            {"operation", name_of(r->operation)},
                            {"iteration", r->iteration},
                            {"begin", r->begin - shown.begin},
                            {"end", r->begin + use.clocks - shown.begin},
                            {"waited_for", causes[at(r->cause)]}});
    for (const ChartBarrier& b : chart.barriers)
        if (b.at >= shown.begin && b.at < shown.end)
            barriers.push_back({{"at", b.at - shown.begin}, {"from", b.from}, {"to", b.to}});
    out.data("operations", std::move(operations)), out.data("rows", std::move(rows));
    out.data("barriers", std::move(barriers));
}

}  // namespace

Section report_of(const StreamChart& stream, const std::string& axis) {
    const Chart& chart = stream.chart;
    const int groups = chart.program.num_warpgroups;
    const Shown shown(chart);
    Section out{"charts/[]",
                fmt::format("overlap over {}, clocks for {:.0f} rows of each of {} warpgroup{}", axis, stream.rows,
                            groups, groups == 1 ? "" : "s"),
                3,
                {}};
    out.data("stream", axis), out.data("rows_a_warpgroup", stream.rows), out.data("warpgroups", groups);
    add_order(out, chart.program);
    out.text(fmt::format("a column is {} clocks; two intervals of the steady state",
                         clocks_text((shown.end - shown.begin) / chart_columns)));
    out.table(lines(chart, shown));
    using Unit = const UnitShare&;
    out.table(report::table_of<UnitShare>(
        "units", "", chart.units,
        {{"unit", "unit", [](Unit u) { return report::words(u.unit); }},
         {"clocks", "clocks", [](Unit u) { return report::number(u.clocks, 4); }},
         {"busy", "busy", [](Unit u) { return Value{u.busy, fmt::format("{:.1f}%", 100 * u.busy)}; }},
         {"busy_without_overheads", "", [](Unit u) { return report::data(u.ideal_busy); }},
         {"room_for_overhead", "room for overhead", [](Unit u) {
              return Value{u.room, fmt::format("{}{:.0f}%", u.room >= most_room ? "over " : "", 100 * u.room)};
          }}}));
    out.line(
        {{"interval_clocks", "interval", {chart.interval, clocks_text(chart.interval) + " clocks;"}},
         {"interval_without_overheads_clocks", "", report::data(chart.ideal_interval)},
         {"window_clocks", "", report::data(2 * chart.interval)},
         {"resource_bound_clocks", "no less than", {chart.resource_bound, clocks_text(chart.resource_bound) + " by units and"}},
         {"recurrence_bound_clocks",
          "",
          {chart.recurrence_bound, clocks_text(chart.recurrence_bound) + " by what waits for what;"}},
         {"iterations_in_flight",
          "",
          {chart.in_flight, fmt::format("{} iteration{} in flight", chart.in_flight, chart.in_flight == 1 ? "" : "s")}}},
        " ");
    const bool has_rate = stream.tensor_flop_per_s > 0;
    out.line({{"tensor_share",
               "the tensor cores are busy",
               {stream.tensor_share, has_rate ? fmt::format("{:.1f}% of it:", 100 * stream.tensor_share) : ""}},
              {"tensor_flop_per_s",
               "",
               {stream.tensor_flop_per_s, has_rate ? fmt::format("{:.0f} TFLOP/s", stream.tensor_flop_per_s / 1e12) : ""}}},
             " ");
    out.line({{"bound_by", "", {chart.bound_by, chart.bound_by + " binds"}}, {"binds", "", report::data(chart.binds)}});
    for (const std::string& step : chart.binds) out.text("  " + step);
    add_for_programs(out, chart, shown);
    return out;
}

}  // namespace napkin
