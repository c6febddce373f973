#include "study/ranking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "study/flips.hpp"
#include "support/numbers.hpp"

namespace napkin {

Result<Ranking> rank(std::vector<Subject> subjects) {
    auto tied = tied_axes(subjects);
    if (!tied) return tied.errors();
    CostTable table(std::move(subjects));
    auto outcomes = table.at({});
    if (!outcomes) return outcomes.errors();
    Ranking out{table.subjects(), std::move(tied).value(), std::move(outcomes).value(), {}};
    if (std::none_of(out.outcomes.begin(), out.outcomes.end(), [](const Outcome& o) { return o.figures.has_value(); }))
        return out.outcomes.front().why;
    out.order.resize(out.outcomes.size());
    std::iota(out.order.begin(), out.order.end(), std::size_t{0});
    const auto seconds = [&](std::size_t i) {
        const auto& figures = out.outcomes[i].figures;
        return figures ? figures->seconds : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(out.order.begin(), out.order.end(),
                     [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
    return out;
}

std::string to_text(const Ranking& r) {
    std::string text = fmt::format("{} at {}\n\n", r.subjects.front().diagram.name, sizes_text(r.sizes));
    std::vector<std::vector<std::string>> rows = {
        {"machine", "time", "of peak", "transfers", "FLOP a byte", "energy", "a million runs", "bound by"}};
    std::string left_out;
    for (const std::size_t i : r.order) {
        const Outcome& outcome = r.outcomes[i];
        if (!outcome.figures) {
            left_out += fmt::format("{} does not run it: {}\n", r.subjects[i].label, outcome.why.message);
            continue;
        }
        const CostSummary& f = *outcome.figures;
        rows.push_back({r.subjects[i].label, seconds_text(f.seconds), fmt::format("{:.0f}%", 100 * f.peak_share()),
                        bytes_text(f.transfers_bytes), fmt::format("{:.3g}", f.flop_per_byte()),
                        f.energy_j ? fmt::format("{:.3g} J", *f.energy_j) : "–",
                        f.price_usd ? fmt::format("{:.3g} USD", *f.price_usd * 1e6) : "–", f.bound_by});
    }
    text += table(rows, {1, 2, 3, 4, 5, 6}) + left_out + "\n";
    for (const Criterion criterion : all_criteria) {
        const int best = best_of(r.outcomes, criterion);
        if (best >= 0)
            text += fmt::format("least {}: {}\n", name(criterion), r.subjects[static_cast<std::size_t>(best)].label);
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

nlohmann::json to_json(const Ranking& r) {
    nlohmann::json out;
    out["diagram"] = r.subjects.front().diagram.name;
    out["sizes"] = nlohmann::json::object();
    for (const TiedAxes& group : r.sizes)
        for (const std::string& axis : group.axes) out["sizes"][axis] = group.size;
    out["results"] = nlohmann::json::array();
    for (const std::size_t i : r.order) {
        nlohmann::json entry = figures_json(r.outcomes[i]);
        entry["label"] = r.subjects[i].label;
        out["results"].push_back(std::move(entry));
    }
    for (const Criterion criterion : all_criteria) {
        const int best = best_of(r.outcomes, criterion);
        auto& entry = out["best"][std::string(name(criterion))];
        if (best >= 0) entry = r.subjects[static_cast<std::size_t>(best)].label;
        if (best == all_equal) entry = "equal";
    }
    return out;
}

}  // namespace napkin
