#include "study/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "support/numbers.hpp"

namespace napkin {
namespace {

AxisSizes at_size(const TiedAxes& group, std::int64_t size) {
    AxisSizes sizes;
    for (const std::string& axis : group.axes) sizes[axis] = size;
    return sizes;
}

bool is_fixed(const std::vector<Subject>& subjects, const TiedAxes& group) {
    return std::any_of(group.axes.begin(), group.axes.end(), [&](const std::string& axis) {
        return std::any_of(subjects.begin(), subjects.end(), [&](const Subject& s) { return s.fixed.contains(axis); });
    });
}

/// Some side runs, and the size is one for every side.
bool is_of_use(const std::vector<Outcome>& outcomes) {
    return std::none_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.has_no_sizes(); }) &&
           std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.figures.has_value(); });
}

/// The powers of two up to the largest and the present size, as far up and down from that as they are of use.
Result<std::vector<std::int64_t>> sizes_to_look_at(CostTable& table, const TiedAxes& group, std::int64_t largest) {
    std::vector<std::int64_t> all = {group.size};
    for (std::int64_t size = 1; size <= largest; size *= 2) all.push_back(size);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const auto present = std::find(all.begin(), all.end(), group.size) - all.begin();
    std::vector<std::int64_t> sizes;
    for (auto i = present; i < std::ssize(all); ++i) {
        const auto outcomes = table.at(at_size(group, all[static_cast<std::size_t>(i)]));
        if (!outcomes) return outcomes.errors();
        if (!is_of_use(*outcomes)) break;
        sizes.push_back(all[static_cast<std::size_t>(i)]);
    }
    for (auto i = present - 1; i >= 0; --i) {
        const auto outcomes = table.at(at_size(group, all[static_cast<std::size_t>(i)]));
        if (!outcomes) return outcomes.errors();
        if (!is_of_use(*outcomes)) break;
        sizes.insert(sizes.begin(), all[static_cast<std::size_t>(i)]);
    }
    return sizes;
}

/// Why the loser lost, where it is not for its time.
std::string reason(const std::vector<Subject>& subjects, const std::vector<Outcome>& outcomes) {
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (!outcomes[i].figures) return fmt::format("{} does not run: {}", subjects[i].label, outcomes[i].why.message);
    return "";
}

Result<WinnersAlong> winners_along(CostTable& table, const TiedAxes& group, std::int64_t largest) {
    const auto sizes = sizes_to_look_at(table, group, largest);
    if (!sizes) return sizes.errors();
    WinnersAlong out{group, group.size, group.size, nobody, {}, {}};
    if (sizes->empty()) return out;
    const auto best = [&](std::int64_t size) -> Result<int> {
        const auto outcomes = table.at(at_size(group, size));
        if (!outcomes) return outcomes.errors();
        return best_of(*outcomes, Criterion::time);
    };
    auto flips = find_flips(*sizes, table.looks_near_flips(), best);
    if (!flips) return flips.errors();
    out.from = sizes->front();
    out.to = sizes->back();
    out.at_from = *best(out.from);
    out.flips = std::move(flips).value();
    for (const Flip& flip : out.flips)
        out.why.push_back(
            reason(table.subjects(), *table.at(at_size(group, flip.before == nobody ? flip.at - 1 : flip.at))));
    return out;
}

std::string lower_text(const std::vector<Subject>& subjects, int winner) {
    if (winner == nobody) return "neither";
    return winner == all_equal ? "equal" : subjects[static_cast<std::size_t>(winner)].label;
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

Result<Comparison> compare(std::vector<Subject> subjects, std::int64_t largest) {
    auto tied = tied_axes(subjects);
    if (!tied) return tied.errors();
    CostTable table(std::move(subjects));
    auto outcomes = table.at({});
    if (!outcomes) return outcomes.errors();
    Comparison out{table.subjects(), std::move(tied).value(), std::move(outcomes).value(), {}, largest};
    for (const Outcome& outcome : out.outcomes)
        if (outcome.has_no_sizes()) return outcome.why;
    for (const TiedAxes& group : out.sizes) {
        if (is_fixed(out.subjects, group)) continue;
        auto along = winners_along(table, group, largest);
        if (!along) return along.errors();
        out.along.push_back(std::move(along).value());
    }
    return out;
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
    text += "\nfaster, as one size changes\n";
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

nlohmann::json to_json(const Comparison& c) {
    using nlohmann::json;
    const auto winner = [&](int who) {
        return who == all_equal ? json("equal") : who == nobody ? json() : json(who == 0 ? "left" : "right");
    };
    json out;
    out["sizes"] = json::object();
    for (const TiedAxes& group : c.sizes)
        for (const std::string& axis : group.axes) out["sizes"][axis] = group.size;
    constexpr const char* names[] = {"left", "right"};
    for (std::size_t i = 0; i < 2; ++i) {
        out[names[i]] = figures_json(c.outcomes[i]);
        out[names[i]]["label"] = c.subjects[i].label;
        out[names[i]]["diagram"] = c.subjects[i].diagram.name;
        out[names[i]]["file"] = c.subjects[i].query.source->name;
        for (const auto& [axis, size] : c.subjects[i].fixed) out[names[i]]["sizes"][axis] = size;
    }
    for (const Criterion criterion : all_criteria)
        out["winner"][std::string(name(criterion))] = winner(best_of(c.outcomes, criterion));
    if (c.outcomes[0].figures && c.outcomes[1].figures)
        out["time_ratio"] = c.outcomes[1].figures->seconds / c.outcomes[0].figures->seconds;
    out["changes"] = json::array();
    for (const WinnersAlong& along : c.along) {
        json flips = json::array();
        for (std::size_t i = 0; i < along.flips.size(); ++i) {
            flips.push_back({{"at", along.flips[i].at},
                             {"before", winner(along.flips[i].before)},
                             {"after", winner(along.flips[i].after)}});
            if (!along.why[i].empty()) flips.back()["why"] = along.why[i];
        }
        out["changes"].push_back({{"axes", along.axes.axes},
                                  {"size", along.axes.size},
                                  {"from", along.from},
                                  {"to", along.to},
                                  {"winner_from", winner(along.at_from)},
                                  {"flips", flips}});
    }
    return out;
}

}  // namespace napkin
