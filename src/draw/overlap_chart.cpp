#include "draw/overlap_chart.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "draw/plot.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

constexpr double left_edge = 118, plot_width = 842, lane_height = 26, row_gap = 14, rows_top = 86;

/// One use of a unit in the steady state.
struct UnitBlock {
    const ChartRow* row = nullptr;
    std::size_t unit = 0;
    double begin = 0, end = 0;  ///< clocks from the window's beginning
};

struct OverlapLayout {
    const StreamChart& stream;
    const Chart& chart = stream.chart;
    double clocks = 2 * chart.interval;
    std::vector<std::string> units;  ///< lanes of every row
    std::vector<UnitBlock> blocks;

    explicit OverlapLayout(const StreamChart& of) : stream(of) {
        for (const UnitShare& unit : chart.units)
            if (unit.clocks > 0) units.push_back(unit.unit);
        // In one order in every chart, whichever binds, so that a unit has one colour.
        sort(units, std::greater<>());
        for (const ChartRow& r : chart.rows)
            for (const ChartUse& use : chart.program.operations[at(r.operation)].uses) {
                const double begin = r.begin - chart.window, end = begin + use.clocks;
                const auto unit = find(units, use.unit);
                if (use.clocks > 0 && end > 0 && begin < clocks && unit != units.end())
                    blocks.push_back({&r, static_cast<std::size_t>(unit - units.begin()), begin, end});
            }
    }
    [[nodiscard]] double x(double clock) const { return left_edge + std::clamp(clock / clocks, 0.0, 1.0) * plot_width; }
    [[nodiscard]] double row_height() const { return lane_height * static_cast<double>(units.size()) + row_gap; }
    [[nodiscard]] double y(int warpgroup, std::size_t unit) const {
        return rows_top + row_height() * warpgroup + lane_height * static_cast<double>(unit);
    }
    [[nodiscard]] double bottom() const { return rows_top + row_height() * chart.program.num_warpgroups; }
    /// When the first block begins that runs on the unit, for anyone, after this one has ended.
    [[nodiscard]] double next_on_unit(const UnitBlock& block) const {
        double next = clocks;
        for (const UnitBlock& b : blocks)
            if (b.unit == block.unit && b.begin >= block.end - 1e-9) next = std::min(next, b.begin);
        return next;
    }
};

/// A step of the ruler: rows of a warpgroup, which is one clock for each thread, times a power of two that leaves some
/// twelve marks.
double ruler_step(double clocks, double rows) {
    double step = rows;
    while (clocks / step > 14) step *= 2;
    while (clocks / step < 4 && step > 1) step /= 2;
    return step;
}

void draw_ruler(const OverlapLayout& l, svg::Document& out) {
    const double step = ruler_step(l.clocks, std::max(1.0, l.stream.rows));
    out.add(label(left_edge - 10, rows_top - 26, "clk", "small text-muted", Anchor::end));
    if (l.stream.rows > 1) out.add(label(left_edge - 10, rows_top - 13, "clk a row", "small text-muted", Anchor::end));
    for (double clock = 0; clock <= l.clocks * (1 + 1e-9); clock += step) {
        out.add(line(l.x(clock), rows_top - 8, l.x(clock), l.bottom() - row_gap + 4, "faint thin no-fill"));
        out.add(label(l.x(clock), rows_top - 26, svg::number_text(clock), "small text-muted", Anchor::middle));
        if (l.stream.rows > 1)
            out.add(label(l.x(clock), rows_top - 13, svg::number_text(clock / l.stream.rows), "small text-muted",
                          Anchor::middle));
    }
    for (int i = 0; i <= 2; ++i) {
        const double x = l.x(i * l.chart.interval);
        out.add(line(x, rows_top - 8, x, l.bottom() - row_gap + 4, "muted no-fill thick"));
    }
}

void draw_block(const OverlapLayout& l, const UnitBlock& b, svg::Document& out) {
    const ChartOperation& op = l.chart.program.operations[at(b.row->operation)];
    const std::string color = series_color(b.unit);
    const double x = l.x(b.begin), width = l.x(b.end) - x, y = l.y(b.row->warpgroup, b.unit) + 2, height = lane_height - 5;
    const double clocks = b.end - b.begin;
    Element group = svg::group("block").data("statement", op.name);
    group.add(Element{"title",
                      {},
                      fmt::format("{} of iteration {} on {}: {} clocks from {}", op.name, b.row->iteration,
                                  l.units[b.unit], svg::number_text(clocks), svg::number_text(b.begin))});
    group.add(rect(x, y, width, height, tint(color), 2));
    // Shades tell the iterations apart, so that one can see which are in flight together.
    if (b.row->iteration % 2 != 0) group.add(rect(x, y, width, 3, filled(color)));
    const auto overhead = l.chart.program.overheads.find(l.units[b.unit]);
    if (overhead != l.chart.program.overheads.end() && overhead->second > 0) {
        const double share = overhead->second / (1 + overhead->second), from = l.x(b.end - clocks * share);
        if (from < x + width) group.add(path(hatching(from, y, x + width - from, height), "hatch " + stroked(color)));
    }
    const UnitShare& unit = *find_if(l.chart.units, [&](const UnitShare& u) { return u.unit == l.units[b.unit]; });
    const double room = std::min({b.end + clocks * unit.room, l.next_on_unit(b), l.clocks});
    if (unit.room > 1e-6 && b.end < l.clocks && room > b.end && l.x(room) - l.x(b.end) > 1) {
        group.add(rect(l.x(b.end), y, l.x(room) - l.x(b.end), height, "dotted " + stroked(color), 2));
        group.add(path(hatching(l.x(b.end), y, l.x(room) - l.x(b.end), height, 7), "hatch " + stroked(color)));
    }
    const std::string name = fitted(op.name, width - 6, 11);
    if (!name.empty()) group.add(label(x + width / 2, y + height / 2 + 4, name, "small halo", Anchor::middle));
    out.add(std::move(group));
}

void draw_barriers(const OverlapLayout& l, svg::Document& out) {
    for (const ChartBarrier& b : l.chart.barriers) {
        const double clock = b.at - l.chart.window;
        if (clock < 0 || clock > l.clocks) continue;
        const double from = l.y(b.from, 0), to = l.y(b.to, 0), x = l.x(clock);
        const double low = std::max(from, to) + lane_height * static_cast<double>(l.units.size());
        Element group = svg::group("barrier");
        group.add(Element{
            "title", {}, fmt::format("clock {}: warpgroup {} hands the turn to {}", svg::number_text(clock), b.from, b.to)});
        group.add(line(x, std::min(from, to), x, low, "muted no-fill thick dotted"));
        const double tip = l.y(b.to, 0) + (b.to > b.from ? 0 : lane_height), way = b.to > b.from ? -6 : 6;
        group.add(path(path_through({{x, tip}, {x - 4, tip + way}, {x + 4, tip + way}}, true), "fill-muted"));
        out.add(std::move(group));
    }
}

/// How a unit fares, in words: what a reader takes from the chart.
std::string unit_text(const UnitShare& unit) {
    return fmt::format("{}: busy {:.1f}%, room for {}{:.0f}% overhead", unit.unit, 100 * unit.busy,
                       unit.room >= most_room ? "over " : "", 100 * unit.room);
}

}  // namespace

svg::Document overlap_chart(const StreamChart& stream, const std::string& axis, const std::string& subject) {
    const OverlapLayout l(stream);
    const Chart& chart = stream.chart;
    const int warpgroups = chart.program.num_warpgroups;
    svg::Document out = chart_document(fmt::format("Overlap over {} of {}", axis, subject));
    out.width = left_edge + plot_width + 30;
    std::vector<std::string> units;
    for (const UnitShare& unit : chart.units) units.push_back(unit_text(unit));
    out.description = fmt::format(
        "{} warpgroups of {} rows, two intervals of {} clocks each, bound by {}, {} iterations in flight. {}.",
        warpgroups, svg::number_text(stream.rows), svg::number_text(chart.interval), chart.bound_by, chart.in_flight,
        join(units, "; "));
    add_title(out);
    std::string line_text = fmt::format("interval {} clk, {} binds, {} iteration{} in flight",
                                        svg::number_text(chart.interval), chart.bound_by, chart.in_flight,
                                        chart.in_flight == 1 ? "" : "s");
    if (stream.tensor_flop_per_s > 0)
        line_text += fmt::format(", tensor cores busy {:.1f}%: {:.0f} TFLOP/s", 100 * stream.tensor_share,
                                 stream.tensor_flop_per_s / 1e12);
    out.add(label(16, 44, fitted(line_text, out.width - 32), "text-muted"));
    draw_ruler(l, out);
    for (int w = 0; w < warpgroups; ++w) {
        const double y = l.y(w, 0);
        out.add(rect(left_edge, y, plot_width, lane_height * static_cast<double>(l.units.size()), "faint thin no-fill"));
        out.add(label(16, y + 14, fmt::format("WG {}", w), "strong"));
        for (std::size_t u = 0; u < l.units.size(); ++u)
            out.add(label(left_edge - 10, l.y(w, u) + 17, fitted(l.units[u], 60, 10), "small " + inked(series_color(u)),
                          Anchor::end));
    }
    // Blocks are seen through; their names stand before everything.
    draw_barriers(l, out);
    for (const UnitBlock& b : l.blocks) draw_block(l, b, out);
    double y = l.bottom() + 14;
    for (std::size_t lane = 0; lane < l.units.size(); ++lane)
        for (const UnitShare& unit : chart.units) {
            if (unit.unit != l.units[lane]) continue;
            out.add(rect(left_edge, y - 10, 14, 11, tint(series_color(lane)), 2));
            out.add(label(left_edge + 22, y, unit_text(unit)));
            y += 19;
        }
    out.add(path(hatching(left_edge, y - 10, 14, 11, 4), "hatch muted"));
    out.add(label(left_edge + 22, y, "overhead within a block, and behind it the room for more", "text-muted"));
    if (!chart.barriers.empty()) {
        out.add(line(left_edge + 430, y - 4, left_edge + 454, y - 4, "muted no-fill thick dotted"));
        out.add(label(left_edge + 462, y, "barrier: a warpgroup hands on the turn", "text-muted"));
    }
    out.height = y + 18;
    return out;
}

nlohmann::ordered_json overlap_trace(const StreamChart& stream, const std::string& axis, double clock_hz) {
    using Json = nlohmann::ordered_json;
    const Chart& chart = stream.chart;
    // Times of the format are microseconds. Perfetto keeps nanoseconds, cuts off what is less, and drops a slice that
    // then begins before the last one's end: whole numbers stay what they are.
    const auto time = [](double clocks) {
        return static_cast<std::int64_t>(std::llround(clocks * trace_units_per_clock));
    };
    // Numbers begin at 1 and none is used twice: Perfetto takes process 0 and thread 0 for the idle task of Linux.
    const int warpgroups = chart.program.num_warpgroups, num_units = static_cast<int>(chart.units.size());
    const auto process = [](int warpgroup) { return warpgroup + 1; };
    const auto thread = [&](int warpgroup, const std::string& unit) {
        const auto found = find_if(chart.units, [&](const UnitShare& u) { return u.unit == unit; });
        if (found == chart.units.end()) throw InternalError("a use of a unit that the chart has no share of");
        return 1 + warpgroups + warpgroup * num_units + static_cast<int>(found - chart.units.begin());
    };
    Json events = Json::array();
    const auto name = [&](const char* what, int p, int t, std::string text) {
        events.push_back(
            {{"ph", "M"}, {"name", what}, {"pid", p}, {"tid", t}, {"ts", 0}, {"args", {{"name", std::move(text)}}}});
    };
    for (int w = 0; w < warpgroups; ++w) {
        name("process_name", process(w), process(w), fmt::format("warpgroup {}", w));
        for (const UnitShare& unit : chart.units) name("thread_name", process(w), thread(w, unit.unit), unit.unit);
    }
    constexpr const char* causes[] = {"nothing", "unit", "need", "issue", "turn"};
    for (const ChartRow& r : chart.rows) {
        const ChartOperation& op = chart.program.operations[at(r.operation)];
        for (const ChartUse& use : op.uses) {
            if (use.clocks <= 0) continue;
            events.push_back({{"ph", "X"},
                              {"name", op.name},
                              {"cat", use.unit},
                              {"pid", process(r.warpgroup)},
                              {"tid", thread(r.warpgroup, use.unit)},
                              {"ts", time(r.begin)},
                              {"dur", time(r.begin + use.clocks) - time(r.begin)},
                              {"args", {{"iteration", r.iteration}, {"waited_for", causes[at(r.cause)]}, {"why", r.why}}}});
        }
    }
    for (const ChartBarrier& b : chart.barriers)
        events.push_back({{"ph", "i"},
                          {"name", fmt::format("turn to {}", b.to)},
                          {"cat", "barrier"},
                          {"pid", process(b.from)},
                          {"tid", process(b.from)},
                          {"ts", time(b.at)},
                          {"s", "p"}});
    return {{"displayTimeUnit", "ms"},
            {"otherData",
             {{"schema", "napkin.trace/2"},
              {"stream", axis},
              {"units_per_clock", trace_units_per_clock},
              {"clock_hz", clock_hz},
              {"interval_clocks", chart.interval}}},
            {"traceEvents", std::move(events)}};
}

}  // namespace napkin::draw
