#include "plan/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plan/misses.hpp"
#include "plan/simulate_again.hpp"
#include "report/print.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

using report::Json;
using report::shown;
using report::Value;

Json choice_json(const Choice& choice) {
    return {{"value", choice.value}, {"reason", choice.reason}, {"by_hand", choice.by_user}};
}

Json choices_json(const Diagram& diagram, const std::map<AxisId, Choice>& choices) {
    Json object = Json::object();
    for (const auto& [axis, choice] : choices) object[diagram.axis(axis).name] = choice_json(choice);
    return object;
}

std::string arena_text(const KernelPlan& kernel) {
    const ScheduledKernel& s = kernel.scheduled;
    const auto bytes = [&](std::int64_t values) { return values * s.value_bytes(); };
    const std::int64_t tiles = bytes(s.held_values), in_place = bytes(s.memory_values - s.held_values),
                       saved = bytes(static_cast<std::int64_t>(kernel.memory_values) - s.memory_values);
    std::string out = fmt::format("{} B: {} B of tiles, {} B of padding", s.arena_bytes(), tiles, s.arena_bytes() - tiles);
    // M counts whole tiles, each in memory of its own.
    if (in_place > 0) out += fmt::format("; {} B of M are read or written in place", in_place);
    if (saved < 0)
        out += fmt::format("; {} B more than M by what {}", -saved,
                           any_of(s.steps, [](const Step& step) { return step.is_tile_pipelined(); })
                               ? "is kept for the next group"
                               : "runs of statements keep and by 64-bit integers");
    if (saved > 0) out += fmt::format("; {} B less than M by panels and shared memory", saved);
    return out;
}

/// What would bind if there were less of what is busy the longest, which bounds the time however well the rest hides
/// behind it.
std::string to_be_faster(const Simulation& time) {
    const Busy &first = time.busy.front(), &second = time.busy[std::min<std::size_t>(1, time.busy.size() - 1)];
    const auto share = [&](double seconds) { return 100 * std::max(0.0, seconds) / time.seconds; };
    return fmt::format("by {:.1f}% at most where {} never waits, and by {:.1f}% more with less of it, until {} binds",
                       share(time.seconds - first.seconds), first.what, share(first.seconds - second.seconds), second.what);
}

report::Section report_of(const KernelPlan& kernel) {
    const ScheduledKernel& s = kernel.scheduled;
    const KernelSchedule& schedule = s.schedule;
    const Simulation& time = kernel.time;
    const Diagram& diagram = s.program->diagram;
    report::Section out{"kernels/[]", "", 0, {}}, figures{"", "", 2, {}};
    out.data("name", schedule.kernel);
    out.data("group", choices_json(diagram, schedule.group));
    out.data("stream", choices_json(diagram, schedule.stream));
    out.data("subloop", choices_json(diagram, schedule.subloop));
    if (s.kernel->parts.any())
        out.data("split/" + diagram.axis(s.kernel->parts.axis).name, choice_json(schedule.split));
    out.data("threads", choice_json(schedule.threads));
    out.data("vector_axis", {{"value", schedule.vector_axis < 0 ? "" : diagram.axis(schedule.vector_axis).name},
                             {"reason", schedule.vector_axis.reason}});
    out.data("panel_vectors", schedule.panel_vectors.value);
    out.text("\n");
    out.line({{"schedule", "", report::words(to_string(*s.program, *s.kernel, schedule))}});

    std::vector<report::Figure> rows;
    const auto add = [&](const char* path, const char* label, Json data, std::string text = "") {
        rows.push_back({path, label, {std::move(data), std::move(text)}});
    };
    add("predicted/transfers_values", "transfers H", time.transfers, fmt::format("{:.0f} values", time.transfers));
    add("predicted/memory_values", "memory M", kernel.memory_values,
        fmt::format("{:.0f} values a core", kernel.memory_values));
    add("arena/bytes", "arena", s.arena_bytes(), arena_text(kernel));
    add("arena/tile_bytes", "", s.held_values * s.value_bytes());
    if (s.on_tensor_cores()) {
        const std::int64_t most = most_registers(s), has = s.unit.registers, spilled = spilled_registers(s);
        add("registers", "registers", {{"tiles", most}, {"available", has}, {"spilled", spilled}, {"spills", spilled > 0}},
            spilled == 0 ? "" : fmt::format("{} of the {} that a thread has for tiles: {} spill", most, has, spilled));
    }
    add("predicted/seconds", "predicted", time.seconds,
        fmt::format("{:.3g} s, bound by {}", time.seconds, time.bound_by()));
    add("predicted/traffic", "", mapped<Json>(time.traffic, [](const Traffic& t) {
            return Json{{"path", t.path}, {"loaded_bytes", t.loaded_bytes}, {"stored_bytes", t.stored_bytes}};
        }));
    add("predicted/bound_by", "", time.bound_by());
    const Busy& busiest = time.busy.front();
    add("predicted/busy", "busiest",
        mapped<Json>(time.busy, [](const Busy& b) { return Json{{"what", b.what}, {"seconds", b.seconds}}; }),
        fmt::format("{} for {:.3g} s", busiest.what, busiest.seconds));
    rows.push_back({"", "faster", shown(to_be_faster(time))});
    add("misses", "", Json::array());
    for (const Miss& miss : misses(kernel))
        add("misses/[]", "misses", {{"what", miss.what}, {"why", miss.why}, {"change", miss.change}}, to_string(miss));
    figures.rows(std::move(rows));
    out.add(std::move(figures));
    return out;
}

constexpr int digits = 5;  // of a kernel's time
/// Shares of the time below this have no line of their own.
constexpr double least_share = 1e-3;

/// The terms, with the small ones in one.
std::vector<TimeTerm> with_lines(const ExplainedTime& time) {
    std::vector<TimeTerm> out;
    TimeTerm rest{"all else", 0, ""};
    std::size_t small = 0;
    for (const TimeTerm& t : time.terms)
        t.seconds < least_share* time.seconds ? (rest.seconds += t.seconds, ++small) : (out.push_back(t), 0u);
    rest.made_of = fmt::format("{} terms of less than {}% each", small, 100 * least_share);
    if (small > 0) out.push_back(std::move(rest));
    return out;
}

/// Terms in units of the last digit that is printed. Those with the largest remainders are rounded up, so that the sum
/// is the rounded time.
std::vector<std::int64_t> rounded(const std::vector<TimeTerm>& terms, double seconds, double unit) {
    auto out = mapped<std::int64_t>(
        terms, [&](const TimeTerm& t) { return static_cast<std::int64_t>(std::floor(t.seconds / unit)); });
    auto left = std::llround(seconds / unit) - sum<std::int64_t>(out, [](std::int64_t n) { return n; });
    std::vector<std::size_t> order(out.size());
    iota(order, std::size_t{0});
    const auto remainder = [&](std::size_t i) { return terms[i].seconds / unit - static_cast<double>(out[i]); };
    const auto exact = mapped<double>(order, remainder);
    stable_sort(order, [&](std::size_t a, std::size_t b) { return exact[a] > exact[b]; });
    for (const std::size_t i : order)
        if (left > 0) ++out[i], --left;
    return out;
}

report::Table table_of(const ExplainedTime& time) {
    // The unit of the column is that of the time, and so are its decimals.
    int exponent = 0, decimals = digits - 1;
    for (const int e : {3, 6, 9})
        if (time.seconds * std::pow(10, exponent) < 1) exponent = e;
    for (double t = time.seconds * std::pow(10, exponent); t >= 10 && decimals > 0; t /= 10) --decimals;
    const std::string unit = exponent == 0 ? "s" : exponent == 3 ? "ms" : exponent == 6 ? "µs" : "ns";
    const double last_digit = std::pow(10, -exponent - decimals);
    const auto cell = [&](double seconds) { return fmt::format("{:.{}f}", seconds * std::pow(10, exponent), decimals); };
    const auto share = [&](double seconds) {
        return Value{seconds / time.seconds, fmt::format("{:.1f}%", 100 * seconds / time.seconds)};
    };

    report::Table out{"", "", {{"", "term"}, {"", unit}, {"", "share"}, {"", "made of"}}, {}};
    const std::vector<TimeTerm> terms = with_lines(time);
    const std::vector<std::int64_t> in_digits = rounded(terms, time.seconds, last_digit);
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const TimeTerm& t = terms[i];
        out.rows.push_back({shown(t.name),
                            {t.seconds, cell(static_cast<double>(in_digits[i]) * last_digit)},
                            share(t.seconds),
                            shown(t.made_of)});
        for (const HiddenTime& h : t.hidden)
            if (h.seconds >= least_share * time.seconds)
                out.rows.push_back({shown("  hidden: " + h.name),
                                    {h.seconds, "(" + cell(h.seconds) + ")"},
                                    shown(""),
                                    shown(fmt::format("slack {} {}{}; {}", cell(h.slack), unit,
                                                      h.behind == t.name ? "" : " behind " + h.behind, h.made_of))});
    }
    out.rows.push_back({shown("predicted"), {time.seconds, cell(time.seconds)}, share(time.seconds)});
    return out;
}

Json term_json(const TimeTerm& t, double seconds) {
    const auto hidden = mapped<Json>(t.hidden, [](const HiddenTime& h) {
        return Json{
            {"name", h.name}, {"seconds", h.seconds}, {"slack_seconds", h.slack}, {"behind", h.behind}, {"made_of", h.made_of}};
    });
    return {
        {"name", t.name}, {"seconds", t.seconds}, {"share", t.seconds / seconds}, {"made_of", t.made_of}, {"hidden", hidden}};
}

}  // namespace

std::vector<ExplainedTime> explained_times(const Derived& derived, const Extents& extents, const Machine& machine,
                                           const Plan& plan) {
    std::vector<ExplainedTime> out;
    for (Simulation& time : simulate_again(derived, extents, machine, plan, {.explains = true})) {
        const KernelPlan& kernel = plan.kernels[out.size()];
        internal_check(time.seconds == kernel.time.seconds, "explain: the plan's time is another one");
        stable_sort(time.terms, [](const TimeTerm& a, const TimeTerm& b) { return a.seconds > b.seconds; });
        out.push_back({kernel.schedule().kernel, time.seconds, std::move(time.terms)});
    }
    return out;
}

report::Section report_of(const Plan& plan) {
    report::Section out;
    out.line({{"machine", "plan for", report::words(plan.machine)}});
    for (const KernelPlan& kernel : plan.kernels) out.add(report_of(kernel));
    return out;
}

std::string to_string(const Plan& plan) { return report::to_text(report_of(plan)); }

report::Section report_of(const std::vector<ExplainedTime>& times) {
    report::Section out;
    for (std::size_t k = 0; k < times.size(); ++k) {
        report::Section kernel{fmt::format("kernels/[{}]/predicted", k), "time of kernel " + times[k].kernel, 2, {}};
        kernel.table(table_of(times[k]));
        kernel.list("terms", times[k].terms, [&](const TimeTerm& t) { return term_json(t, times[k].seconds); });
        out.add(std::move(kernel));
    }
    return out;
}

}  // namespace napkin
