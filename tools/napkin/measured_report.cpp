// A run as a report: what was derived, planned, moved, measured and checked.
#include <fmt/format.h>

#include <cmath>

#include "diagram/hidden_axes.hpp"
#include "napkin/measured.hpp"
#include "run/derivation.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

using report::Section;
using report::Value;

std::string derived_text(const Derived& derived) {
    std::string text = kernels_line(derived) + "\n";
    for (const Kernel& kernel : derived.kernels) {
        if (derived.kernels.size() > 1) text += fmt::format("kernel {}\n", kernel.name);
        text += aligned(kernel_lines(derived, kernel), "");
    }
    for (const Refusal& refusal : derived.refusals)
        text += fmt::format("not done: {}: {}\n", refusal.what, refusal.reason);
    return text;
}

std::string choices(const Diagram& diagram, const std::map<AxisId, Choice>& chosen) {
    std::string text;
    for (const auto& [axis, choice] : chosen)
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", diagram.axis(axis).name, choice.value);
    return text.empty() ? "none" : text;
}

std::string planned_text(const Plan& plan) {
    std::string text = plan.machine + "\n";
    for (const KernelPlan& kernel : plan.kernels) {
        const KernelSchedule& s = kernel.schedule();
        const Diagram& diagram = kernel.scheduled.program->diagram;
        if (plan.kernels.size() > 1) text += fmt::format("kernel {}\n", s.kernel);
        text += fmt::format("groups of {}; chunks of {}; {} thread{}", choices(diagram, s.group),
                            choices(diagram, s.stream), s.threads.value, s.threads.value == 1 ? "" : "s");
        if (const StreamParts& parts = kernel.scheduled.kernel->parts; parts.any())
            text += fmt::format("; {} parts of {}", s.split.value, diagram.axis(parts.axis).name);
        if (s.vector_axis >= 0) {
            int rows = 1;
            for (const Atom& atom : s.atoms) rows = std::max(rows, atom.rows);
            text += fmt::format("; vectors along {}, {} rows × {} vectors in registers",
                                diagram.axis(s.vector_axis).name, rows, s.panel_vectors);
        }
        text += fmt::format("\nbound by {}\n", kernel.time.busy.front().what);
    }
    return text;
}

/// Said once, when the derivation is new here.
std::string validated_text(const Measured& m) {
    if (!m.first_use || m.first_use->known) return "";
    const std::string cut = m.first_use->cut_trials == 0
                                ? ""
                                : fmt::format(" ({} of them cut to what a check may take)", m.first_use->cut_trials);
    return fmt::format("new here: the same as the definition on {} small sizes{}, tried in {}\n", m.first_use->trials,
                       cut, seconds_text(m.first_use->seconds));
}

report::Table transfers(const Measured& m, bool color) {
    report::Table out{"", "", {{"", " "}, {"", "predicted"}, {"", "counted"}, {"", " "}, {"", " "}}, {}};
    const std::vector<KernelPlan>& kernels = m.compilation.plan.kernels;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const std::string which = kernels.size() > 1 ? " of " + kernels[i].schedule().kernel : "";
        const auto row = [&](const char* what, double predicted, std::int64_t values, const char* meaning) {
            const auto counted = static_cast<double>(values);
            const double more = predicted - counted, rounding = 1e-9 * predicted;
            out.rows.push_back(
                {report::shown(what + which), report::count(std::round(predicted)), report::count(counted),
                 report::shown(std::abs(more) <= rounding ? green("equal", color)
                               : more > 0                 ? green("fewer", color)
                                                          : red("DIFFERENT", color)),
                 report::shown(meaning + std::string(more > rounding ? "; in letters, skipped chunks and ragged "
                                                                       "tiles are whole ones"
                                                                     : ""))});
        };
        row("H", m.report.predicted_transfers[i], m.report.counted[i].transfers(), "values to and from memory");
        row("M", m.report.predicted_memory[i], m.report.counted[i].peak_memory, "values that a core holds");
    }
    return out;
}

double bytes_in_and_out(const Measured& m) {
    double total = 0;
    const Diagram& diagram = m.compilation.diagram;
    for (const auto& list : {diagram.inputs, diagram.outputs}) {
        for (const ArrayId id : list)
            total += static_cast<double>(count_values(diagram, id, m.compilation.extents)) * bytes(diagram.array(id).type);
    }
    return total;
}

/// Multiplications where they are the work; else how fast inputs and outputs pass.
Value rate(const Measured& m, double flops, double seconds) {
    const double moved = bytes_in_and_out(m);
    if (m.report.dense_flops > 4 * moved)
        return {flops / seconds, fmt::format("{:.{}f} GFLOP/s", flops / seconds / 1e9, flops / seconds < 1e10 ? 1 : 0)};
    return {moved / seconds, fmt::format("{:.1f} GB/s", moved / seconds / 1e9)};
}

/// "OpenBLAS 0.3.21": the library's own name goes on with how it was built.
std::string short_name(const std::string& blas) { return blas.substr(0, blas.find(' ', blas.find(' ') + 1)); }

/// Beside the equations one by one, where these were measured.
void add_times(Section& out, const Measured& m, bool color) {
    const RunReport& r = m.report;
    const auto memory = [](std::int64_t bytes) { return report::bytes(static_cast<double>(bytes)); };
    report::Table table{"", "", {{"", " "}, {"", "napkin"}, {"", "equation by equation"}, {"", " "}}, {}};
    table.rows = {{report::shown("time"), {r.kernel_seconds, bold(seconds_text(r.kernel_seconds), color)}},
                  {report::shown("rate"), rate(m, r.flops, r.kernel_seconds)},
                  {report::shown("extra memory"), memory(r.kernel_extra_bytes)}};
    if (r.baseline_seconds) {
        const auto ratio = r.speedup();
        table.rows[0].push_back(report::seconds(*r.baseline_seconds));
        table.rows[0].push_back(report::shown(!ratio        ? "no fair peer"
                                              : *ratio >= 1 ? bold(fmt::format("{:.2f}× faster", *ratio), color)
                                                            : bold(fmt::format("{:.2f}× slower", 1 / *ratio), color)));
        table.rows[1].push_back(rate(m, r.dense_flops, *r.baseline_seconds));
        table.rows[2].push_back(memory(r.baseline_extra_bytes));
    }
    if (r.predicted_seconds > 0)
        table.rows.insert(table.rows.begin() + 1, {report::shown("predicted"), report::seconds(r.predicted_seconds)});
    std::string how = r.device.empty()
                          ? fmt::format("medians of {}, {} thread{}", r.repetitions, r.threads, r.threads == 1 ? "" : "s")
                          : fmt::format("median of {} on {}, its caches flushed before each", r.repetitions, r.device);
    if (r.baseline_seconds && !r.blas.empty()) how += "; contractions by " + short_name(r.blas);
    if (r.baseline_seconds && r.baseline_multiplies > 0 && r.blas.empty() && r.device.empty())
        how += "; without OpenBLAS contractions are kernels of napkin's own (napkin doctor says how to install it)";
    for (const std::string& own : r.baseline_own) how += "; " + own;
    if (!r.baseline_left_out.empty()) how += "; equation by equation left out: " + r.baseline_left_out;
    out.table(std::move(table));
    out.text(dim(how, color));
}

/// Each array's values beside those of the definition.
void add_verdict(Section& out, const Verdict& verdict, bool color) {
    using Of = const ArrayVerdict&;
    const auto number = [](std::int64_t n) { return count_text(static_cast<double>(n)); };
    const auto what = [&](Of v) {
        if (v.judgement == Judgement::bad) return number(v.beyond) + " outside of their bounds";
        const std::string error = "error " + error_text(v.error);
        if (v.unbounded == 0) return fmt::format("{}, at most {:.2g}% of the bound", error, 100 * v.share);
        // Which of them are no numbers, though the definition's are.
        return fmt::format("{}; {} have no bound{}", error, number(v.unbounded),
                           v.lost == 0 ? "" : fmt::format(" ({} are NaN or infinite by rounding)", number(v.lost)));
    };
    const auto judgement = [&](Of v) -> Value {
        const std::string text(name(v.judgement));
        return {text, v.judgement == Judgement::good ? green(text, color) : red(text, color)};
    };
    report::Table table = report::table_of<ArrayVerdict>(
        "checks", "", verdict.arrays,
        {{"array", "", [](Of v) { return report::words(v.array); }},
         {"type", "", [](Of v) { return report::words(name(v.type)); }},
         {"error", "", [&](Of v) { return Value{v.error, what(v)}; }},
         {"judgement", "", judgement},
         {"within_plain", "",
          [](Of v) {
              return Value{v.within_plain(), fmt::format("{} 2 × {} + {}", v.within_plain() ? "≤" : ">",
                                                         error_text(v.plain_error), error_text(v.rounding))};
          }},
         {"values", "", [](Of v) { return report::data(v.values); }},
         {"beyond", "", [](Of v) { return report::data(v.beyond); }},
         {"unbounded", "", [](Of v) { return report::data(v.unbounded); }},
         {"lost", "", [](Of v) { return report::data(v.lost); }},
         {"farthest", "",
          [](Of v) {
              return report::data(
                  {{"share", v.share}, {"place", v.place}, {"value", v.value}, {"reference", v.reference}, {"bound", v.bound}});
          }},
         {"plain_error", "", [](Of v) { return report::data(v.plain_error); }},
         {"rounding", "", [](Of v) { return report::data(v.rounding); }}});
    out.data("checked_values", verdict.checked_values), out.data("output_values", verdict.output_values);
    out.data("good", verdict.good() && verdict.left_out.empty());
    if (!verdict.left_out.empty()) {
        out.data("left_out", verdict.left_out);
        out.text(red("not compared", color) + ": " + verdict.left_out + dim("; --check-seconds allows more", color));
        return out.table(for_programs(std::move(table)));
    }
    out.table(std::move(table));
    const std::string which = verdict.checked_values == verdict.output_values
                                  ? "every value"
                                  : fmt::format("{} of {} values, drawn at random", number(verdict.checked_values),
                                                number(verdict.output_values));
    out.text(dim(which + " against double precision, each within the error that the definition allows; last: "
                         "FlashAttention's rule",
                 color));
}

/// What programs get beside what the screen has.
void add_for_programs(Section& out, const Measured& m) {
    const RunReport& r = m.report;
    out.data("diagram", m.compilation.diagram.name), out.data("sizes", report::Json::object());
    for (const AxisId i : axes_of_text(m.compilation.diagram))
        out.data("sizes/" + m.compilation.diagram.axes[i].name, m.compilation.extents[i]);
    out.data("machine", m.compilation.plan.machine), out.data("kernels", report::Json::array());
    for (std::size_t i = 0; i < m.compilation.plan.kernels.size(); ++i) {
        report::Json kernel = {
            {"name", m.compilation.plan.kernels[i].schedule().kernel},
            {"predicted", {{"transfers_values", r.predicted_transfers[i]}, {"memory_values", r.predicted_memory[i]}}}};
        if (!r.counted.empty())
            kernel["counted"] = {{"transfers_values", r.counted[i].transfers()},
                                 {"memory_values", r.counted[i].peak_memory},
                                 {"groups", r.counted[i].groups},
                                 {"chunks_run", r.counted[i].chunks_run},
                                 {"chunks_skipped", r.counted[i].chunks_skipped}};
        out.data("kernels/[]", std::move(kernel));
    }
    out.data("predicted_seconds", r.predicted_seconds), out.data("seconds", r.kernel_seconds);
    out.data("repetitions", r.repetitions), out.data("threads", r.threads);
    if (!r.device.empty()) out.data("device", r.device);
    out.data("flops", r.flops), out.data("extra_bytes", r.kernel_extra_bytes);
    const std::string baseline = "equation_by_equation/";
    out.data(baseline + "extra_bytes", r.baseline_extra_bytes);
    if (r.baseline_seconds) {
        out.data(baseline + "seconds", *r.baseline_seconds), out.data(baseline + "multiplies", r.baseline_multiplies);
        out.data(baseline + "blas", r.blas);
        if (!r.device.empty()) out.data(baseline + "own_kernels", r.baseline_own);
        if (const auto ratio = r.speedup()) out.data("speedup", *ratio);
    } else {
        out.data(baseline + "left_out", r.baseline_left_out);
    }
    if (r.multiply_flops_per_s) out.data("sgemm_flops_per_s", *r.multiply_flops_per_s);
    out.data("compile/seconds", r.compile_seconds), out.data("compile/from_cache", r.from_cache);
}

}  // namespace

Section measured_report(const Measured& m, bool color) {
    Section out;
    const auto add = [&](const std::string& title, const auto& fill) {
        Section part{"", title, 12, {}};
        fill(part);
        out.add(std::move(part));
    };
    const std::string& name = m.compilation.diagram.name;
    out.text(left(bold(name, color), std::max<std::size_t>(12, name.size() + 2)) + sizes_text(m.compilation) + "\n\n");
    add("derived", [&](Section& of) { of.text(derived_text(m.compilation.derived) + validated_text(m) + "\n"); });
    add("planned", [&](Section& of) { of.text(planned_text(m.compilation.plan) + "\n"); });
    if (!m.report.counted.empty()) add("transfers", [&](Section& of) { of.table(transfers(m, color)); });
    out.text("\n");
    add("compiled", [&](Section& of) {
        of.text(m.report.from_cache ? "from the cache" : "in " + seconds_text(m.report.compile_seconds));
    });
    add("measured", [&](Section& of) { add_times(of, m, color); });
    if (m.verdict) out.text("\n"), add("checked", [&](Section& of) { add_verdict(of, *m.verdict, color); });
    add_for_programs(out, m);
    return out;
}

}  // namespace napkin::cli
