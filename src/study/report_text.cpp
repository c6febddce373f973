// The answers to questions as text, and the cells of CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/report.hpp"
#include "study/kernel_costs.hpp"
#include "study/report.hpp"
#include "support/ids.hpp"
#include "support/json.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string summary_text(const CostSummary& s, std::size_t kernels) {
    std::string text = fmt::format(
        "\nin all on {}: {} {} (bound {}) in {} kernel{}, {} through memory, {:.3g} FLOP a byte, bound by {}",
        s.machine, s.no_plan.empty() ? "expected" : "estimated", seconds_text(s.seconds), seconds_text(s.bound_s),
        kernels, kernels == 1 ? "" : "s", bytes_text(s.transfers_bytes), s.flops / s.transfers_bytes, s.bound_by);
    if (s.energy_j) text += fmt::format("; {:.3g} J at full power", *s.energy_j);
    if (s.price_usd) text += fmt::format("; {:.3g} USD a million runs", *s.price_usd * 1e6);
    if (!s.no_plan.empty()) text += fmt::format("; a closed form, as {}", s.no_plan);
    if (!s.unused_instructions.empty()) text += fmt::format("; kernels do without {}", s.unused_instructions);
    return text + "\n";
}

std::string lower_text(const std::vector<Subject>& subjects, int winner) {
    if (winner == nobody) return "neither";
    return winner == all_equal ? "equal" : subjects[at(winner)].label;
}

/// One line of the table: a figure of both sides, their ratio, and whose is lower.
struct FigureRow {
    const char* name;
    std::optional<double> left, right;
    std::string (*shown)(double);
    bool less_is_better = true;
};

std::vector<FigureRow> figure_rows(const CostSummary& l, const CostSummary& r) {
    const auto three = [](double v) { return fmt::format("{:.3g}", v); };
    const auto million = [](double v) { return fmt::format("{:.3g} USD", v * 1e6); };
    return {{"time", l.seconds, r.seconds, seconds_text},
            {"transfers", l.transfers_bytes, r.transfers_bytes, bytes_text},
            {"FLOPs", l.flops, r.flops, three},
            {"FLOP a byte", l.flop_per_byte(), r.flop_per_byte(), three, false},
            {"arrays in memory", l.footprint_bytes, r.footprint_bytes, bytes_text},
            {"energy", l.energy_j, r.energy_j, [](double v) { return fmt::format("{:.3g} J", v); }},
            {"a million runs", l.price_usd, r.price_usd, million}};
}

std::string ratio_text(double left, double right) {
    return left > 0 ? fmt::format("{:.3g}×", right / left) : std::string("–");
}

std::string better(const std::vector<Subject>& subjects, const FigureRow& row) {
    if (!row.less_is_better || !row.left || !row.right) return "";
    if (std::abs(*row.left - *row.right) <= 1e-9 * *row.left) return "equal";
    return subjects[*row.left < *row.right ? 0 : 1].label;
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

std::string to_text(const CostStudy& study) {
    const Compilation& c = study.compilation;
    const std::string text = cost_text(c.derived, numbers_of(study), study.tiles);
    if (study.summary) return text + summary_text(*study.summary, study.kernels.size());
    std::vector<std::string> missing;
    const auto unbound = bind_sizes(c.diagram);
    for (const Diagnostic& error : unbound.errors()) missing.push_back(error.message);
    return text + fmt::format("\nno numbers: {}\n", join(missing, "; "));
}

std::string to_text(const Comparison& c) {
    const Subject &left = c.subjects[0], &right = c.subjects[1];
    std::string text = fmt::format("{} against {} at {}\n\n", left.label, right.label, sizes_text(c.sizes));
    const auto &l = c.outcomes[0].figures, &r = c.outcomes[1].figures;
    if (l && r) {
        std::vector<std::vector<std::string>> rows = {{"", left.label, right.label, "ratio", "less"}};
        const auto shown = [](const FigureRow& row, const std::optional<double>& v) { return v ? row.shown(*v) : "–"; };
        for (const FigureRow& row : figure_rows(*l, *r)) {
            rows.push_back({row.name, shown(row, row.left), shown(row, row.right),
                            row.left && row.right ? ratio_text(*row.left, *row.right) : "–", better(c.subjects, row)});
            if (rows.size() == 2) {
                rows.push_back({"bound by", l->bound_by, r->bound_by, "", ""});
                rows.push_back(
                    {"kernels", fmt::format("{}", l->num_kernels), fmt::format("{}", r->num_kernels), "", ""});
            }
        }
        text += table(rows, {1, 2, 3});
    } else {
        for (std::size_t i = 0; i < c.outcomes.size(); ++i)
            text += c.outcomes[i].figures
                        ? fmt::format("{}: {}\n", c.subjects[i].label, seconds_text(c.outcomes[i].figures->seconds))
                        : fmt::format("{} does not run: {}\n", c.subjects[i].label, c.outcomes[i].why.message);
    }
    text += rates_text(c.outcomes);
    text += "\nfaster, as one size changes (GPUs by the closed form)\n";
    for (const WinnersAlong& along : c.along) {
        const std::string axes = names_text(along.axes.axes);
        const std::string end = count_text(static_cast<double>(along.to)) +
                                (along.to < c.largest ? ", the most that runs" : "");
        if (along.flips.empty()) {
            text += fmt::format("  {}  no change from {} to {}: {}\n", axes,
                                count_text(static_cast<double>(along.from)), end, lower_text(c.subjects, along.at_from));
            continue;
        }
        text += fmt::format("  {}  from {} {}", axes, count_text(static_cast<double>(along.from)),
                            lower_text(c.subjects, along.at_from));
        for (std::size_t i = 0; i < along.flips.size(); ++i)
            text += fmt::format("; from {} {}{}", count_text(static_cast<double>(along.flips[i].at)),
                                lower_text(c.subjects, along.flips[i].after),
                                along.why[i].empty() ? "" : " (" + along.why[i] + ")");
        text += fmt::format("; to {}\n", end);
    }
    return text;
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

std::string to_text(const Ranking& r) {
    std::string text = fmt::format("{} at {}\n\n", r.subjects.front().diagram.name, sizes_text(r.sizes));
    std::vector<std::vector<std::string>> rows = {{"machine", "time", "bound", "of peak", "transfers", "FLOP a byte",
                                                   "energy", "a million runs", "bound by", "rates"}};
    std::string left_out;
    for (const std::size_t i : r.order) {
        const Outcome& outcome = r.outcomes[i];
        if (!outcome.figures) {
            left_out += fmt::format("{} does not run it: {}\n", r.subjects[i].label, outcome.why.message);
            continue;
        }
        const CostSummary& f = *outcome.figures;
        if (!f.no_plan.empty())
            left_out += fmt::format("{} is estimated by a closed form: {}\n", r.subjects[i].label, f.no_plan);
        if (!f.unused_instructions.empty())
            left_out += fmt::format("{}: kernels do without {}\n", r.subjects[i].label, f.unused_instructions);
        rows.push_back({r.subjects[i].label, seconds_text(f.seconds), seconds_text(f.bound_s),
                        fmt::format("{:.0f}%", 100 * f.peak_share()), bytes_text(f.transfers_bytes),
                        fmt::format("{:.3g}", f.flop_per_byte()), f.energy_j ? fmt::format("{:.3g} J", *f.energy_j) : "–",
                        f.price_usd ? fmt::format("{:.3g} USD", *f.price_usd * 1e6) : "–", f.bound_by, f.rates.text()});
    }
    text += table(rows, {1, 2, 3, 4, 5, 6, 7}) + left_out + "\n";
    for (const Criterion criterion : all_criteria) {
        const int best = best_of(r.outcomes, criterion);
        if (best >= 0)
            text += fmt::format("least {}: {} (rates {})\n", name(criterion), r.subjects[at(best)].label,
                                r.outcomes[at(best)].figures->rates.text());
        if (best == all_equal) text += fmt::format("least {}: all are equal\n", name(criterion));
    }
    return text;
}

std::string to_csv(const Ranking& r) {
    std::string text = "label";
    for (const std::string_view column : csv_columns) text += fmt::format(",{}", column);
    text += "\n";
    for (const std::size_t i : r.order) text += csv_quoted(r.subjects[i].label) + "," + csv_cells(r.outcomes[i]) + "\n";
    return text;
}

std::string csv_quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

std::string csv_cells(const Outcome& outcome) {
    const nlohmann::json figures = figures_json(outcome);
    std::vector<std::string> cells;
    for (const std::string_view column : csv_columns) {
        const auto found = figures.find(std::string(column));
        if (column == "error") {
            cells.push_back(csv_quoted(outcome.figures ? "" : outcome.why.message));
        } else if (found == figures.end() || found->is_null()) {
            cells.emplace_back();
        } else {
            cells.push_back(found->is_string() ? csv_quoted(*found) : found->dump());
        }
    }
    return join(cells, ",");
}

}  // namespace napkin
