// What is costed beside each other, and a study of one: as reports.
#include "study/report.hpp"

#include <fmt/format.h>

#include <map>

#include "cost/footprint.hpp"
#include "cost/report.hpp"
#include "diagram/hidden_axes.hpp"
#include "machine/peaks.hpp"
#include "study/kernel_costs.hpp"
#include "study/outcome_columns.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using report::Json;
using report::Section;
using report::Value;

/// Transactions of a warp whose threads run along an axis, for every array in memory.
Json coalescing(const Compilation& c) {
    Json out = Json::array();
    if (c.machine.kind != MachineKind::gpu) return out;
    for (const auto* arrays : {&c.diagram.inputs, &c.diagram.outputs})
        for (const ArrayId id : *arrays) {
            const Array& array = c.diagram.array(id);
            for (const AxisId axis : axes_of_text(c.diagram)) {
                std::int64_t stride = 0, step = 1;
                for (auto a = array.axes.rbegin(); a != array.axes.rend(); ++a) {
                    if (*a == axis) stride = step;
                    step *= c.extents[*a];
                }
                out.push_back({{"array", array.name},
                               {"axis", c.diagram.axis(axis).name},
                               {"transactions", warp_transactions(c.machine, stride, bytes(array.type))}});
            }
        }
    return out;
}

void add_summary(Section& out, const CostSummary& s, std::size_t kernels) {
    const bool planned = s.no_plan.empty();
    const auto optional = [](const std::optional<double>& value, double by, const char* unit) {
        return value ? Value{*value, fmt::format("{:.3g} {}", *value * by, unit)} : report::shown("");
    };
    const auto words = [](const std::string& text) { return text.empty() ? report::shown("") : report::words(text); };
    out.line({{"machine", "in all on", {s.machine, s.machine + ":"}},
              {"time/seconds", planned ? "expected" : "estimated", report::seconds(s.seconds)},
              {"time/is_planned", "", report::data(planned)},
              {"time/bound_s", "(bound", {s.bound_s, seconds_text(s.bound_s) + ")"}},
              {"", "in", report::shown(fmt::format("{} kernel{},", kernels, kernels == 1 ? "" : "s"))},
              {"transfers_bytes", "", {s.transfers_bytes, bytes_text(s.transfers_bytes) + " through memory,"}},
              {"flops", "", report::data(s.flops)},
              {"flop_per_byte", "", {s.flop_per_byte(), fmt::format("{:.3g} FLOP a byte,", s.flop_per_byte())}},
              {"time/bound_by", "bound by", report::words(s.bound_by)}},
             " ");
    out.line({{"energy_j", "at full power", optional(s.energy_j, 1, "J")},
              {"price_usd", "a million runs", optional(s.price_usd, 1e6, "USD")}},
             "; ");
    out.line({{"time/no_plan", "a closed form, as", words(s.no_plan)}});
    out.line({{"time/unused_instructions", "kernels do without", words(s.unused_instructions)}});
}

/// A figure of both sides, and how many times the left one the right one is.
void add_sides(Section& out, const Comparison& c) {
    report::Table table{"", "", {{"", "figure"}, {"", c.subjects[0].label}, {"", c.subjects[1].label}, {"", "ratio"}}, {}};
    for (const auto& [path, head, value] : outcome_columns()) {
        const Value left = value(c.outcomes[0]), right = value(c.outcomes[1]);
        for (const auto& [side, of] : {std::pair{"left/", left}, {"right/", right}})
            out.line({{side + path, "", {of.data, ""}}});
        if (head.empty()) continue;
        const bool both = left.data.is_number() && right.data.is_number() && left.data.get<double>() > 0;
        table.rows.push_back(
            {report::shown(head), left, right,
             both ? report::shown(fmt::format("{:.3g}×", right.data.get<double>() / left.data.get<double>()))
                  : report::shown()});
    }
    if (any_of(c.outcomes, [](const Outcome& o) { return o.figures.has_value(); })) out.table(table);
}

/// "X does not run it: why", and how an outcome is not what a plan's would be. `at`: where.
void add_remarks(Section& out, const std::string& label, const Outcome& o, const std::string& at = "") {
    const auto say = [&](const char* what, const std::string& why) {
        if (!why.empty()) out.text(fmt::format("{} {}{}: {}", label, what, at, why));
    };
    if (!o.figures) return say("does not run it", o.why.message);
    say("is estimated by a closed form", o.figures->no_plan);
    say("does without", o.figures->unused_instructions);
}

}  // namespace

std::optional<CostNumbers> numbers_of(const CostStudy& study) {
    if (!study.summary) return std::nullopt;
    const Compilation& c = study.compilation;
    CostNumbers numbers;
    numbers.extents = c.extents;
    for (const KernelOnMachine& kernel : study.kernels) numbers.sizes.push_back(tiles_of(kernel, c.extents));
    numbers.memory_values = study.memory_values;
    numbers.machine = &c.machine;
    numbers.on_machine = &study.kernels;
    numbers.special_overhead = study.special_overhead;
    numbers.explain = study.explain;
    return numbers;
}

Section report_of(const CostStudy& study) {
    const Compilation& c = study.compilation;
    Section out = cost_report(c.derived, numbers_of(study), study.tiles);
    out.data("diagram", c.diagram.name);
    out.text("\n");
    if (!study.summary) {
        const auto unbound = bind_sizes(c.diagram);
        const auto missing = mapped<std::string>(unbound.errors(), [](const Diagnostic& error) { return error.message; });
        out.text("no numbers: " + join(missing, "; "));
        return out;
    }
    add_summary(out, *study.summary, study.kernels.size());
    const Footprint f = footprint(c.derived, c.extents);
    out.data(
        "footprint",
        {{"arrays", f.arrays}, {"inputs_bytes", f.inputs}, {"outputs_bytes", f.outputs}, {"intermediates_bytes", f.between}});
    out.data("coalescing", coalescing(c));
    out.list("ridges", ridges(c.machine), [&](const Ridge& ridge) {
        return Json{{"unit", ridge.unit},
                    {"type", name(ridge.type)},
                    {"level", c.machine.levels[ridge.level].name},
                    {"flop_per_byte", ridge.flop_per_byte}};
    });
    return out;
}

Section report_of(const Comparison& c) {
    static const std::vector<std::string> names = {"left", "right"};
    const std::vector<std::string> labels = labels_of(c.subjects);
    Section out;
    out.text(fmt::format("{} against {} at {}\n\n", labels[0], labels[1], sizes_text(c.sizes)));
    out.data("sizes", sizes_json(c.sizes));
    add_sides(out, c);
    for (std::size_t i = 0; i < 2; ++i) {
        out.line({{names[i] + "/label", "", report::data(labels[i])},
                  {names[i] + "/diagram", "", report::data(c.subjects[i].diagram.name)},
                  {names[i] + "/file", "", report::data(c.subjects[i].query.source->name)}});
        for (const auto& [axis, size] : c.subjects[i].fixed) out.data(names[i] + "/sizes/" + axis, size);
        add_remarks(out, labels[i], c.outcomes[i]);
    }
    add_best(out, "winner", c.outcomes, labels, names);
    if (c.outcomes[0].figures && c.outcomes[1].figures)
        out.data("time_ratio", c.outcomes[1].figures->seconds / c.outcomes[0].figures->seconds);
    out.text("\nfaster, as one size changes");
    Json changes = Json::array();
    for (const WinnersAlong& along : c.along) {
        Json flips = Json::array();
        const auto number = [](std::int64_t size) { return count_text(static_cast<double>(size)); };
        std::string text = fmt::format("  {} from {} {}", names_text(along.axes.axes), number(along.from),
                                       winner_text(along.at_from, labels));
        int before = along.at_from;
        for (std::size_t i = 0; i < along.changes.size(); ++i) {
            const auto& [after, at, what] = along.changes[i];
            flips.push_back({{"at", at},
                             {"not_at", after},
                             {"before", winner_json(std::exchange(before, what), names)},
                             {"after", winner_json(what, names)}});
            if (!along.why[i].empty()) flips.back()["why"] = along.why[i];
            text += fmt::format(" to {}; from {} {}{}", number(after), number(at), winner_text(what, labels),
                                along.why[i].empty() ? "" : " (" + along.why[i] + ")");
        }
        out.text(text + " to " + number(along.to) + (along.to < farthest * along.axes.size ? ", the most that runs" : ""));
        changes.push_back({{"axes", along.axes.axes},
                           {"size", along.axes.size},
                           {"from", along.from},
                           {"to", along.to},
                           {"winner_from", winner_json(along.at_from, names)},
                           {"flips", flips}});
    }
    out.data("changes", changes);
    return out;
}

std::string rates_text(const std::vector<Outcome>& outcomes) {
    std::map<std::string, std::string> rates;
    for (const Outcome& outcome : outcomes)
        if (outcome.figures) rates[outcome.figures->machine] = outcome.figures->rates.text();
    if (rates.size() < 2) return "";
    std::string text;
    for (const auto& [machine, of] : rates) text += fmt::format("{} {} {}", text.empty() ? "rates:" : ",", machine, of);
    return text + "\n";
}

Section report_of(const Ranking& r) {
    const std::vector<std::string> labels = labels_of(r.subjects);
    Section out;
    out.text(fmt::format("{} at {}\n\n", r.subjects.front().diagram.name, sizes_text(r.sizes)));
    out.data("diagram", r.subjects.front().diagram.name);
    out.data("sizes", sizes_json(r.sizes));
    report::Table table{"results", "", {{"label", "machine"}}, {}};
    add_columns(table);
    for (const std::size_t i : r.order) {
        table.rows.push_back({report::words(labels[i])});
        add_values(table.rows.back(), r.outcomes[i]);
    }
    out.table(std::move(table));
    for (const std::size_t i : r.order) add_remarks(out, labels[i], r.outcomes[i]);
    out.text("\n");
    add_best(out, "best", r.outcomes, labels, labels);
    return out;
}

}  // namespace napkin
