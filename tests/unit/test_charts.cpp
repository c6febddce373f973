// Charts: what they show equals the data, no two labels meet, nothing is outside, and texts stay texts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "algebra/held_layout.hpp"
#include "costed.hpp"
#include "draw/configuration_chart.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/hierarchy_chart.hpp"
#include "draw/html.hpp"
#include "draw/layout_chart.hpp"
#include "draw/machine_steps.hpp"
#include "draw/measured_chart.hpp"
#include "draw/overlap_chart.hpp"
#include "draw/plot.hpp"
#include "draw/roofline_chart.hpp"
#include "draw/setting_fragments.hpp"
#include "draw/sweep_chart.hpp"
#include "draw/tiles_chart.hpp"
#include "draw/transfers_chart.hpp"
#include "steps/report.hpp"
#include "support/files.hpp"
#include "support/ids.hpp"
#include "support/json.hpp"
#include "support/numbers.hpp"
#include "support/paths.hpp"

namespace napkin::draw::test_charts {
namespace {

const std::string folder = in_sources("examples/schedules/");

FiguresRequest figure_34(const std::string& machine = "h100-sxm5") {
    FiguresRequest out;
    out.text = read_file(folder + "napkin.nk").value(), out.file = "napkin.nk";
    out.schedule = read_file(folder + "napkin-figure-34.schedule").value();
    out.machine = machine;
    return out;
}

FiguresRequest example(const std::string& name, const std::string& machine = "h100-sxm5") {
    FiguresRequest out;
    out.text = read_file(in_sources("examples/" + name + ".nk")).value(), out.file = name;
    out.machine = machine;
    return out;
}

Figures figures(const FiguresRequest& request) {
    auto out = figures_for(request);
    EXPECT_TRUE(out.ok()) << render(out.errors());
    return std::move(out).value();
}

std::string attribute(const svg::Element& e, std::string_view name) {
    for (const auto& [key, value] : e.attributes)
        if (key == name) return value;
    return "";
}

void walk(const std::vector<svg::Element>& all, const std::function<void(const svg::Element&)>& look) {
    for (const svg::Element& e : all) look(e), walk(e.children, look);
}

struct TextBox {
    std::string text;
    double left, right, top, bottom;
};

/// Boxes of texts that are not turned. The width is estimated on the safe side, so a tenth less must be free.
std::vector<TextBox> text_boxes(const svg::Document& document) {
    std::vector<TextBox> out;
    walk(document.children, [&](const svg::Element& e) {
        if (e.tag != "text" || !attribute(e, "transform").empty() || e.text.empty()) return;
        const std::string classes = attribute(e, "class"), anchor = attribute(e, "text-anchor");
        const double size = classes.find("small") != std::string::npos ? chart_small_text
                            : classes.find("big") != std::string::npos ? chart_big_text
                                                                       : chart_text;
        const double x = std::stod(attribute(e, "x")), y = std::stod(attribute(e, "y"));
        const double width = 0.9 * text_width(e.text, size), left = anchor == "middle" ? x - width / 2
                                                                    : anchor == "end"  ? x - width
                                                                                       : x;
        out.push_back({e.text, left, left + width, y - 0.75 * size, y + 0.1 * size});
    });
    return out;
}

std::vector<std::string> faults(const svg::Document& document) {
    std::vector<std::string> out;
    if (document.title.empty() || document.description.size() < 2) out.emplace_back("no title or no description");
    const std::vector<TextBox> boxes = text_boxes(document);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const TextBox& a = boxes[i];
        if (a.left < 0 || a.top < 0 || a.right > document.width || a.bottom > document.height)
            out.push_back(fmt::format("'{}' is outside: {} to {}, {} to {}", a.text, a.left, a.right, a.top, a.bottom));
        for (std::size_t j = i + 1; j < boxes.size(); ++j) {
            const TextBox& b = boxes[j];
            if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
                out.push_back(fmt::format("'{}' meets '{}'", a.text, b.text));
        }
    }
    walk(document.children, [&](const svg::Element& e) {
        if (e.tag != "rect") return;
        const double x = std::stod(attribute(e, "x")), width = std::stod(attribute(e, "width"));
        if (x < -0.01 || width < 0 || x + width > document.width + 0.01) out.push_back("a rectangle is outside");
    });
    return out;
}

using Faults = std::vector<std::string>;

TEST(Charts, LabelsKeepClearOfEachOther) {
    for (const char* machine : {"h100-sxm5", "h200", "b200", "a100-sxm-80gb", "mi300x", "rtx-4090"})
        EXPECT_EQ(faults(hierarchy_chart(load_machine(machine).value())), Faults()) << machine;
    std::vector<FiguresRequest> requests{figure_34(), figure_34("b200")};
    for (const char* name :
         {"attention_bf16", "matmul", "layernorm", "grouped_query", "swiglu", "multihead", "decode", "conv1d"})
        requests.push_back(example(name));
    for (const FiguresRequest& request : requests) {
        const Figures f = figures(request);
        const std::string of = request.file + " on " + request.machine;
        EXPECT_EQ(faults(roofline_chart(f.machine, f.kernels, {}, f.diagram.name)), Faults()) << of;
        const CostNumbers numbers = f.numbers();
        for (const KernelFigures& k : cost_figures(f.derived, numbers, f.tiles)) {
            EXPECT_EQ(faults(transfers_chart(f.derived, k, f.extents, f.memory_values, f.diagram.name)), Faults()) << of;
            EXPECT_EQ(faults(tiles_chart(f.derived, f.derived.kernels[k.kernel], f.extents,
                                         tiles_of(f.kernels[k.kernel], f.extents), f.diagram.name)),
                      Faults())
                << of;
        }
        if (!f.steps) continue;
        for (const KernelSteps& k : f.steps->kernels) {
            EXPECT_EQ(faults(configuration_chart(k, f.diagram.name)), Faults()) << of;
            for (const StreamChart& s : k.charts)
                EXPECT_EQ(faults(overlap_chart(s, f.steps->axes[at(s.stream)], f.diagram.name)), Faults()) << of;
        }
    }
}

/// Names as long as nobody writes them, which begin alike.
TEST(Charts, LongNamesHaveTheRoomThatThereIs) {
    FiguresRequest request;
    request.file = "long", request.machine = "h100-sxm5";
    const std::string name = "a_name_that_is_longer_than_any_picture_has_room_for_";
    const std::string i = name + "i", j = name + "j", k = name + "k";
    const std::string left = name + "left[" + i + ", " + k + "]", right = name + "right[" + j + ", " + k + "]",
                      result = name + "result[" + i + ", " + j + "]";
    request.text = name + "(" + left + ", " + right + ") -> " + result + "\n    " + result + " = sum(" + k + ") " +
                   left + " * " + right + "\nsizes " + i + " = " + j + " = 256, " + k + " = 4096\n";
    const Figures f = figures(request);
    EXPECT_EQ(faults(roofline_chart(f.machine, f.kernels, {}, f.diagram.name)), Faults());
    const CostNumbers numbers = f.numbers();
    const KernelFigures of = cost_figures(f.derived, numbers, f.tiles).at(0);
    EXPECT_EQ(faults(transfers_chart(f.derived, of, f.extents, f.memory_values, f.diagram.name)), Faults());
    EXPECT_EQ(
        faults(tiles_chart(f.derived, f.derived.kernels[0], f.extents, tiles_of(f.kernels[0], f.extents), f.diagram.name)),
        Faults());
    ASSERT_TRUE(f.steps);
    const KernelSteps& steps = f.steps->kernels.at(0);
    EXPECT_EQ(faults(configuration_chart(steps, f.diagram.name)), Faults());
    EXPECT_EQ(faults(overlap_chart(steps.charts.at(0), f.steps->axes[at(steps.charts.at(0).stream)], f.diagram.name)),
              Faults());
    EXPECT_TRUE(svg::shortened_name(i, 60).starts_with("a_") && svg::shortened_name(i, 60).ends_with("_i"));
    EXPECT_NE(svg::shortened_name(i, 60), svg::shortened_name(j, 60));
    EXPECT_EQ(svg::shortened_name("short", 60), "short");
}

/// Sums multiply nothing: their roof is that of their type all the same, and what binds them is in the picture.
TEST(Charts, ARooflineHasARoofAndTheSlopesThatBind) {
    FiguresRequest request;
    request.file = "total", request.machine = "h100-sxm5";
    request.text = "total(X[a]) -> s\n    s = sum(a) X[a]\nsizes a = 1000003\n";
    for (const FiguresRequest& of : {request, example("attention"), example("softmax", "generic-cpu")}) {
        const Figures f = figures(of);
        const svg::Document chart = roofline_chart(f.machine, f.kernels, {}, f.diagram.name);
        int roofs = 0, slopes = 0, points = 0;
        walk(chart.children, [&](const svg::Element& e) {
            const std::string classes = attribute(e, "class");
            if (e.tag == "path" && classes.starts_with("thick") && !attribute(e, "d").empty())
                ++(classes.ends_with("ink") ? roofs : slopes);
            if (e.tag == "circle" && !attribute(e, "data-kernel").empty()) ++points;
            // A slope's name stands along it, within the frame.
            const std::string transform = attribute(e, "transform");
            if (e.tag != "text" || !transform.starts_with("translate(") || transform.find("rotate(-90)") != std::string::npos)
                return;
            const double x = std::stod(transform.substr(10)), y = std::stod(transform.substr(transform.find(' ')));
            EXPECT_TRUE(x >= 92 && x <= 736 && y >= 52 && y <= 440) << e.text << " at " << transform;
        });
        EXPECT_GE(roofs, 1) << of.file;
        EXPECT_GE(slopes, 1) << of.file;
        EXPECT_GE(points, 1) << of.file;
        EXPECT_EQ(faults(chart), Faults()) << of.file;
    }
}

/// What a test of overlaps must find: two labels at one place.
TEST(Charts, TheTestFindsLabelsThatMeet) {
    svg::Document document = chart_document("t");
    document.description = "two texts", document.width = 100, document.height = 50;
    document.add(label(10, 20, "first"));
    document.add(label(20, 22, "second"));
    document.add(label(90, 40, "outside"));
    EXPECT_EQ(faults(document).size(), 2U);
}

TEST(Charts, BlocksAreAsWideAsTheirClocks) {
    const Figures f = figures(figure_34());
    const StreamChart& stream = f.steps->kernels.at(0).charts.at(0);
    const svg::Document drawn = overlap_chart(stream, "x", "attention");
    // Two intervals are the whole ruler: 842 units.
    const double scale = 842 / (2 * stream.chart.interval);
    std::size_t blocks = 0;
    walk(drawn.children, [&](const svg::Element& e) {
        if (attribute(e, "class") != "block") return;
        ++blocks;
        const std::string title = e.children.at(0).text;
        const double clocks = std::stod(title.substr(title.find(": ") + 2)),
                     begin = std::stod(title.substr(title.find("from ") + 5));
        const double end = std::min(begin + clocks, 2 * stream.chart.interval), from = std::max(begin, 0.0);
        EXPECT_NEAR(std::stod(attribute(e.children.at(1), "width")), (end - from) * scale, 0.02) << title;
    });
    const auto json = to_json(report_of(stream, "x"))["charts"][0];
    std::size_t expected = 0;
    for (const auto& row : json["rows"]) expected += row["end"].get<double>() > row["begin"].get<double>() ? 1 : 0;
    EXPECT_EQ(blocks, expected);
    EXPECT_NE(drawn.description.find("2304"), std::string::npos) << drawn.description;
}

TEST(Charts, ATraceHasEveryBlock) {
    const Figures f = figures(figure_34());
    const StreamChart& stream = f.steps->kernels.at(0).charts.at(0);
    const auto trace = overlap_trace(stream, "x", f.machine.clock_hz.value);
    double tensor = 0, expected = 0;
    for (const auto& event : trace["traceEvents"]) {
        ASSERT_TRUE(event.contains("ph") && event.contains("pid"));
        if (event["ph"] == "X" && event["cat"] == "tensor") tensor += event["dur"].get<double>();
    }
    for (const ChartRow& row : stream.chart.rows)
        for (const ChartUse& use : stream.chart.program.operations[at(row.operation)].uses)
            if (use.unit == "tensor") expected += use.clocks;
    EXPECT_GT(expected, 0);
    EXPECT_NEAR(tensor / trace_units_per_clock, expected, 1e-5 * expected);
}

/// What breaks the rules of Chrome's trace event format, and what Perfetto is known to need besides. Ids start at 1 (0
/// is the idle task), and no thread is in two processes. There is no time before 0 and no part of a nanosecond, which
/// Perfetto cuts off.
std::vector<std::string> trace_faults(const nlohmann::ordered_json& trace) {
    std::vector<std::string> out;
    const auto is_number = [](const auto& e, const char* key) {
        return e.contains(key) && e[key].is_number_integer() && e[key] >= 0;
    };
    const auto is_text = [](const auto& e, const char* key) {
        return e.contains(key) && e[key].is_string() && e[key] != "";
    };
    if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array()) return {"no events"};
    if (trace.contains("displayTimeUnit") && trace["displayTimeUnit"] != "ms" && trace["displayTimeUnit"] != "ns")
        out.emplace_back("a unit that there is not");
    std::map<std::int64_t, std::int64_t> process_of;
    std::set<std::int64_t> processes, threads, used;
    std::map<std::int64_t, std::vector<std::pair<double, double>>> slices;
    for (const auto& e : trace["traceEvents"]) {
        const std::string what = e.dump();
        if (!is_text(e, "ph") || !is_text(e, "name")) out.push_back("no ph or no name: " + what);
        if (!e.contains("pid") || !e.contains("tid") || !e["pid"].is_number_integer() ||
            !e["tid"].is_number_integer() || e["pid"] < 1 || e["tid"] < 1) {
            out.push_back("no ids from 1 on: " + what);
            continue;
        }
        const std::int64_t pid = e["pid"], tid = e["tid"];
        if (process_of.emplace(tid, pid).first->second != pid) out.push_back("a thread of two processes: " + what);
        if (!is_number(e, "ts")) out.push_back("no time: " + what);
        const std::string ph = e.value("ph", "");
        if (ph == "M") {
            if (!e.contains("args") || !is_text(e["args"], "name")) out.push_back("a name without one: " + what);
            if (e["name"] == "process_name")
                processes.insert(pid);
            else if (e["name"] == "thread_name")
                threads.insert(tid);
            else
                out.push_back("metadata of no known kind: " + what);
        } else if (ph == "X") {
            if (!is_number(e, "dur"))
                out.push_back("no duration: " + what);
            else
                slices[tid].emplace_back(e.value("ts", 0.0), e.value("ts", 0.0) + e["dur"].get<double>());
            used.insert(tid);
        } else if (ph == "i") {
            if (e.contains("s") && e["s"] != "g" && e["s"] != "p" && e["s"] != "t")
                out.push_back("no such scope: " + what);
        } else {
            out.push_back("no such phase: " + what);
        }
    }
    for (const auto& [tid, pid] : process_of)
        if (!processes.contains(pid)) out.push_back(fmt::format("process {} has no name", pid));
    for (const std::int64_t tid : used)
        if (!threads.contains(tid)) out.push_back(fmt::format("thread {} has no name", tid));
    // Where two overlap, one is within the other: slices of a thread are calls.
    for (auto& [tid, all] : slices) {
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : a.second > b.second;
        });
        std::vector<double> ends;
        for (const auto& [begin, end] : all) {
            while (!ends.empty() && ends.back() <= begin) ends.pop_back();
            if (!ends.empty() && end > ends.back()) out.push_back(fmt::format("slices of thread {} cross", tid));
            ends.push_back(end);
        }
    }
    return out;
}

nlohmann::ordered_json first_trace(const Figures& f) {
    return overlap_trace(f.steps->kernels.at(0).charts.at(0), "x", f.machine.clock_hz.value);
}

FiguresRequest flash_attention_3(const std::string& diagram, const std::string& schedule) {
    FiguresRequest out;
    out.text = read_file(folder + "flash-attention-3.nk").value(), out.file = "flash-attention-3.nk";
    out.schedule = read_file(folder + "flash-attention-3-" + schedule + ".schedule").value();
    out.diagram = diagram, out.machine = "h100-sxm5";
    return out;
}

TEST(Charts, TracesKeepTheRulesOfTheirFormat) {
    std::vector<FiguresRequest> requests{figure_34(), figure_34("b200"), example("attention_bf16"), example("matmul")};
    for (const char* schedule : {"inter", "intra"})
        for (const char* diagram : {"fp16", "fp8"}) requests.push_back(flash_attention_3(diagram, schedule));
    for (const FiguresRequest& request : requests)
        EXPECT_EQ(trace_faults(first_trace(figures(request))), Faults()) << request.file << " " << request.diagram;
}

TEST(Charts, TheTestFindsWhatBreaksTheTracesRules) {
    const auto trace = first_trace(figures(flash_attention_3("fp16", "inter")));
    const auto& events = trace["traceEvents"];
    std::size_t slice = 0, instant = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (events[i]["ph"] == "X") slice = i;
        if (events[i]["ph"] == "i") instant = i;
    }
    ASSERT_GT(slice, 0U);
    ASSERT_GT(instant, 0U);
    const auto broken = [&](std::size_t event, const char* key, const nlohmann::ordered_json& value) {
        auto copy = trace;
        if (value.is_null())
            copy["traceEvents"][event].erase(key);
        else
            copy["traceEvents"][event][key] = value;
        return trace_faults(copy).size();
    };
    for (const char* key : {"ph", "name", "pid", "tid", "ts", "dur"}) EXPECT_GT(broken(slice, key, nullptr), 0U) << key;
    EXPECT_GT(broken(slice, "ph", "Q"), 0U);
    EXPECT_GT(broken(slice, "ts", -1), 0U);
    EXPECT_GT(broken(slice, "ts", 0.5), 0U);
    // Into the middle of the next on its thread.
    for (std::size_t next = 0; next < events.size(); ++next)
        if (events[next]["ph"] == "X" && events[next]["tid"] == events[slice]["tid"] && next != slice) {
            const std::int64_t from = events[next]["ts"], clocks = events[next]["dur"];
            EXPECT_GT(broken(slice, "ts", from + clocks / 2), 0U);
            break;
        }
    EXPECT_GT(broken(slice, "tid", 0), 0U);
    EXPECT_GT(broken(slice, "tid", 999), 0U);
    EXPECT_GT(broken(slice, "pid", 99), 0U);
    EXPECT_GT(broken(instant, "s", "x"), 0U);
    EXPECT_GT(broken(0, "args", nullptr), 0U);
    EXPECT_GT(broken(0, "name", "colour"), 0U);
}

TEST(Charts, BarsAddUpToTheBudget) {
    const Figures f = figures(figure_34());
    const KernelSteps& k = f.steps->kernels.at(0);
    double memory = 0, registers = 0;
    for (const ConfigurationRow& row : k.configuration)
        (row.at == HeldAt::memory ? memory : registers) += bytes_of_block(row, k.num_warpgroups);
    const auto used = [&](const LevelBudget& b) {
        return b.block_bytes + b.warpgroup_bytes * static_cast<double>(k.num_warpgroups);
    };
    EXPECT_EQ(memory, used(k.budgets.at(0)));
    EXPECT_EQ(registers, used(k.budgets.at(1)));
}

TEST(Charts, ALayoutsCellsAreItsValues) {
    const auto layout = layouts::parse_held("Sw<2,0,2> o (4,8):(8,1)").value();
    const svg::Document drawn = layout_chart(layout, "a layout").value();
    std::vector<std::string> cells;
    walk(drawn.children, [&](const svg::Element& e) {
        if (e.tag == "text" && attribute(e, "class").find("on-cell") != std::string::npos) cells.push_back(e.text);
    });
    ASSERT_EQ(cells.size(), 32U);
    for (std::int64_t r = 0; r < 4; ++r)
        for (std::int64_t c = 0; c < 8; ++c)
            EXPECT_EQ(cells[static_cast<std::size_t>(8 * r + c)], std::to_string(layout.layout(r + 4 * c)));
    EXPECT_EQ(faults(drawn), Faults());
    const auto held = layouts::parse_held("accumulators(64,16)").value();
    EXPECT_EQ(faults(layout_chart(held, "accumulators").value()), Faults());
    EXPECT_EQ(layout_chart(layouts::parse_held("(1024,1024):(1024,1)").value(), "large").errors().front().code,
              "too-large");
}

TEST(Charts, MeasuredRunsAreFoundInRecords) {
    const auto points = measured_points("a.json", R"({"results": [{"name": "a", "predicted_seconds": 1, "seconds": 2},
        {"deep": {"predicted_seconds": 3e-3, "measured_seconds": 2e-3, "d": 64}}, {"seconds": 1}]})");
    ASSERT_TRUE(points.ok());
    ASSERT_EQ(points->size(), 2U);
    EXPECT_EQ(points->at(1).name, "d 64");
    EXPECT_EQ(points->at(1).measured_s, 2e-3);
    EXPECT_EQ(faults(measured_chart(*points, "runs")), Faults());
    for (const char* text : {"", "[]", "{\"seconds\": 1}", "{\"predicted_seconds\": -1, \"seconds\": 1}", "no json"})
        EXPECT_EQ(measured_points("a.json", text).errors().front().code, "not-a-measurement") << text;
}

TEST(Charts, ScalesHoldTheirValues) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 200; ++i) {
        std::vector<double> values;
        for (int n = 0; n < 3; ++n) values.push_back(std::exp2(static_cast<double>(random() % 80) - 40));
        for (const bool logarithmic : {false, true}) {
            const Scale scale = scale_of(values, logarithmic, 100, 700);
            for (const double v : values) EXPECT_TRUE(scale(v) >= 100 && scale(v) <= 700) << v;
            const std::vector<double> marks = ticks(scale);
            EXPECT_LE(marks.size(), 12U);
            EXPECT_GE(marks.size(), 1U);
        }
    }
    EXPECT_EQ(ticks(scale_of({}, true, 0, 1)).empty(), false);
}

TEST(Html, NamesStayTexts) {
    using namespace html;
    const Element e = element("p", "<script>alert('1')</script> & \"\x01\xff", "a");
    EXPECT_EQ(
        html::to_text(e),
        "<p class=\"a\">&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;\xEF\xBF\xBD\xEF\xBF\xBD</p>\n");
    EXPECT_EQ(html::to_text(element("span").set("title", "\"><b>")), "<span title=\"&quot;&gt;&lt;b&gt;\"></span>");
    EXPECT_THROW(html::to_text(plain("script", "</script>")), InternalError);
    // The prime of a former value is no part of its name.
    const auto parts = with_names("O = O′ * x2", {{"x"}, {"O"}});
    ASSERT_EQ(parts.size(), 4U);
    EXPECT_EQ(parts[2].text, "O");
    EXPECT_EQ(parts[3].text, "′ * x2");
}

TEST(Html, SizesAreTypesetFromTheirTerms) {
    const SymbolNames names = [](Symbol s) {
        return s.kind == SymbolKind::memory ? "M" : s.kind == SymbolKind::group ? "g_q" : "d";
    };
    const Size size = Size(2) * Size(axis_symbol(0)) + Size(4) * Size(axis_symbol(0), 2) * Size(memory_symbol, -1);
    const std::string text = html::to_text(html::math(size, names));
    EXPECT_NE(
        text.find("<mfrac><mrow><mn>4</mn><msup><mi data-axis=\"d\">d</mi><mn>2</mn></msup></mrow><mi>M</mi></mfrac>"),
        std::string::npos)
        << text;
    EXPECT_NE(html::to_text(html::math(Size(group_symbol(0), Rational(-1, 2)), names))
                  .find("<msqrt><msub data-axis=\"q\"><mi>g</mi><mi>q</mi></msub></msqrt>"),
              std::string::npos);
}

TEST(Figures, RequestsSurviveTheirJson) {
    FiguresRequest request = figure_34();
    request.sizes["q"] = 8192, request.group["q"] = 192, request.items = {"stream x"}, request.fuse = false;
    const auto back = read_request(request_json(request).dump());
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(request_json(*back), request_json(request));
    for (const char* bad : {"", "[]", R"({"sizes": 3})", R"({"sizes": {"q": "a"}})", R"({"fuse": 1})"})
        EXPECT_EQ(read_request(bad).errors().front().code, "bad-request") << bad;
}

TEST(Figures, AnswersSayWhatIsWrong) {
    FiguresRequest request = figure_34("h100");
    const auto said = nlohmann::json::parse(answer(request_json(request).dump()));
    EXPECT_NE(said["errors"][0].get<std::string>().find("there is no machine 'h100'"), std::string::npos) << said;
    request = figure_34(), request.sizes["q"] = -1;
    EXPECT_TRUE(nlohmann::json::parse(answer(request_json(request).dump())).contains("errors"));
    request = figure_34(), request.text = "attention(";
    EXPECT_TRUE(nlohmann::json::parse(answer(request_json(request).dump())).contains("errors"));
    EXPECT_TRUE(nlohmann::json::parse(answer("no json")).contains("errors"));
    // A CPU has a cost, and a reason why there are no steps.
    const Figures f = figures(example("attention", "generic-cpu"));
    EXPECT_EQ(f.no_steps.at(0).code, "not-a-gpu");
    EXPECT_GT(f.seconds().value_or(0), 0);
}

/// A size at a time changes what follows, as the tables of the paper's figure 34 and of half its head.
TEST(Figures, FollowTheSetting) {
    FiguresRequest request = figure_34();
    const Figures whole = figures(request);
    request.sizes["d"] = 64;
    const Figures half = figures(request);
    EXPECT_DOUBLE_EQ(whole.steps->kernels[0].throughput.lower_bound(), 6);
    EXPECT_DOUBLE_EQ(half.steps->kernels[0].throughput.lower_bound(), 4.0625);
    EXPECT_LT(*half.seconds(), *whole.seconds());
    request.group["q"] = 256;
    const Figures two = figures(request);
    ASSERT_TRUE(two.steps) << render(two.no_steps);
    EXPECT_EQ(two.steps->kernels[0].num_warpgroups, 2);
    request.warpgroup["q"] = 96;
    const auto bad = figures_for(request);
    ASSERT_FALSE(bad.ok() && bad->steps);
}

/// A page's plan is that of the command line, where no assembler has a word in it: on a CPU, and where it accepts the
/// first one. All that the page says of time, tables and pictures is of this plan.
TEST(Figures, APlanIsThatOfTheCommandLine) {
    for (const auto& [name, machine] : {std::pair("attention", "generic-cpu"), std::pair("matmul", "h100-sxm5"),
                                        std::pair("attention_bf16", "h200"), std::pair("layernorm", "h200")}) {
        FiguresRequest request = example(name, machine);
        if (name == std::string("matmul")) request.sizes = {{"a", 512}};
        if (name == std::string("attention")) request.sizes = {{"d", 64}};
        PipelineOptions options;
        options.machine = machine, options.sizes = request.sizes, options.until = Pass::plan, options.keep_plan = false;
        const auto compiled = run_pipeline(std::make_shared<const Source>(Source{request.file, request.text}), options);
        ASSERT_TRUE(compiled.ok()) << render(compiled.errors());
        ASSERT_EQ(compiled->notes, std::vector<std::string>()) << name;
        const Figures f = figures(request);
        ASSERT_TRUE(f.plan) << render(f.no_plan);
        EXPECT_EQ(to_string(*f.plan), to_string(compiled->plan)) << name;
        EXPECT_EQ(*f.seconds(), compiled->plan.seconds());
        EXPECT_EQ(sum<double>(f.kernels, &KernelOnMachine::seconds), compiled->plan.seconds()) << "of the cost, too";
        const auto said = nlohmann::json::parse(answer(request_json(request).dump()));
        EXPECT_EQ(said["figures"]["seconds"], compiled->plan.seconds());
        EXPECT_NE(said["fragments"]["summary"].get<std::string>().find(seconds_text(compiled->plan.seconds())),
                  std::string::npos);
        if (f.machine.kind == MachineKind::cpu) continue;
        ASSERT_TRUE(f.steps) << render(f.no_steps);
        EXPECT_EQ(f.steps->expected_s, compiled->plan.seconds());
        for (const Fragment& fragment : setting_fragments(f, costs_of(f)))
            EXPECT_FALSE(fragment.content.empty()) << name << " " << fragment.id;
        EXPECT_EQ(step_pictures(f).content.size(), machine_step_names().size() + 1) << name;
    }
}

/// A schedule of the paper's hierarchy is none of a kernel's: the plan is the model's own, and the tables say so. A
/// machine without kernels has bounds and no time.
TEST(Figures, WithoutAPlanOfTheSettingSaySo) {
    const auto said = nlohmann::json::parse(answer(request_json(figure_34()).dump()));
    EXPECT_EQ(figures(figure_34()).notes.size(), 1U);
    EXPECT_GT(said["figures"]["plan"]["kernels"][0]["seconds"].get<double>(), 0);
    EXPECT_NE(said["fragments"]["plan-content"].get<std::string>().find("not a kernel&#39;s"), std::string::npos);
    EXPECT_NE(said["fragments"]["steps"].get<std::string>().find("not of a kernel"), std::string::npos);

    const auto without = nlohmann::json::parse(answer(request_json(example("attention_bf16", "mi300x")).dump()));
    EXPECT_FALSE(without["figures"].contains("seconds"));
    EXPECT_GT(without["figures"]["bound_s"].get<double>(), 0);
    EXPECT_FALSE(without["figures"]["no_plan"].empty());
    for (const char* part : {"summary", "plan-content"})
        EXPECT_NE(without["fragments"][part].get<std::string>().find("mi300x is neither"), std::string::npos) << part;
    for (const auto& [id, text] : without["fragments"].items())
        for (const char* word : {"estimated ", "closed form at", "predicted"})
            EXPECT_EQ(text.get<std::string>().find(word), std::string::npos) << id << " " << word;
}

/// What a report draws of the steps is no higher than a document's page, as what `napkin draw` draws.
TEST(Figures, PicturesOfStepsAreFolded) {
    const Figures f = figures(example("attention_bf16"));
    for (const std::string& step : machine_step_names()) {
        const Picture tall = picture_of(machine_step_drawing(*f.steps, "GMEM", step));
        const Picture folded = picture_of(machine_step_drawing(*f.steps, "GMEM", step), {.page_height = document_height});
        ASSERT_GT(tall.height, document_height) << step << ": nothing is to be folded";
        EXPECT_LT(folded.height, tall.height) << step;
    }
    for (const svg::Element& step : step_pictures(f).content) {
        const std::string text = html::to_text(step), box = "viewBox=\"0 0 ";
        const std::size_t size = text.find(box);
        ASSERT_NE(size, std::string::npos);
        const double height = std::stod(text.substr(text.find(' ', size + box.size())));
        EXPECT_LE(height, document_height * 1.1) << text.substr(size, 40);
    }
}

}  // namespace
}  // namespace napkin::draw::test_charts
