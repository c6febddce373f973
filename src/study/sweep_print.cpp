// A sweep for readers: as a table with what changes below it, and as CSV.
#include <fmt/format.h>

#include <set>

#include "study/report.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string winner_text(const std::vector<Subject>& subjects, int winner) {
    if (winner == nobody) return "none";
    return winner == all_equal ? "equal" : subjects[at(winner)].label;
}

std::string header_of(const SweepAxis& axis) { return names_text(axis.axes); }

std::string table_of_one(const Sweep& s) {
    std::vector<std::vector<std::string>> rows(1);
    for (const SweepAxis& axis : s.axes) rows[0].push_back(header_of(axis));
    for (const char* column :
         {"time", "bound", "of peak", "transfers", "FLOP a byte", "arrays", "energy", "a million runs", "bound by"})
        rows[0].emplace_back(column);
    for (const SweepPoint& point : s.points) {
        std::vector<std::string>& row = rows.emplace_back();
        for (const std::int64_t size : point.sizes) row.push_back(count_text(static_cast<double>(size)));
        const Outcome& outcome = point.outcomes[0];
        if (!outcome.figures) {
            row.insert(row.end(), {"–", "–", "–", "–", "–", "–", "–", "–", "does not run: " + outcome.why.message});
            continue;
        }
        const CostSummary& f = *outcome.figures;
        row.insert(row.end(),
                   {seconds_text(f.seconds), seconds_text(f.bound_s), fmt::format("{:.0f}%", 100 * f.peak_share()),
                    bytes_text(f.transfers_bytes), fmt::format("{:.3g}", f.flop_per_byte()),
                    bytes_text(f.footprint_bytes), f.energy_j ? fmt::format("{:.3g} J", *f.energy_j) : "–",
                    f.price_usd ? fmt::format("{:.3g} USD", *f.price_usd * 1e6) : "–", f.bound_by});
    }
    std::vector<std::size_t> to_right;
    for (std::size_t i = 0; i + 1 < rows[0].size(); ++i) to_right.push_back(i);
    return table(rows, to_right);
}

std::string table_of_many(const Sweep& s) {
    std::vector<std::vector<std::string>> rows(1);
    for (const SweepAxis& axis : s.axes) rows[0].push_back(header_of(axis));
    for (const Subject& subject : s.subjects) rows[0].push_back(subject.label);
    std::set<Criterion> criteria;
    for (const BestAlong& best : s.best) criteria.insert(best.criterion);
    for (const Criterion criterion : criteria) rows[0].push_back(fmt::format("least {}", name(criterion)));
    for (const SweepPoint& point : s.points) {
        std::vector<std::string>& row = rows.emplace_back();
        for (const std::int64_t size : point.sizes) row.push_back(count_text(static_cast<double>(size)));
        for (const Outcome& outcome : point.outcomes)
            row.push_back(outcome.figures ? seconds_text(outcome.figures->seconds) : "–");
        for (const Criterion criterion : criteria)
            row.push_back(winner_text(s.subjects, best_of(point.outcomes, criterion)));
    }
    std::vector<std::size_t> to_right;
    for (std::size_t i = 0; i < s.axes.size() + s.subjects.size(); ++i) to_right.push_back(i);
    return table(rows, to_right);
}

/// Why subjects do not run, or have no plan, each reason once with the first size at which it stands.
std::string reasons(const Sweep& s) {
    std::string text;
    const auto add = [&](std::size_t i, const char* what, const auto& why) {
        const auto point = find_if(s.points, [&](const SweepPoint& p) { return !why(p.outcomes[i]).empty(); });
        if (point == s.points.end()) return;
        std::vector<std::string> at;
        for (std::size_t a = 0; a < s.axes.size(); ++a)
            at.push_back(fmt::format("{} = {}", header_of(s.axes[a]), point->sizes[a]));
        text += fmt::format("{} {} at {}: {}\n", s.subjects[i].label, what, join(at, ", "), why(point->outcomes[i]));
    };
    for (std::size_t i = 0; i < s.subjects.size(); ++i) {
        if (s.subjects.size() > 1)
            add(i, "does not run", [](const Outcome& o) { return o.figures ? "" : o.why.message; });
        add(i, "is estimated by a closed form", [](const Outcome& o) { return o.figures ? o.figures->no_plan : ""; });
    }
    return text;
}

/// " at b = 2, h = 8": the axes but the last.
std::string others_text(const Sweep& s, const std::vector<std::int64_t>& others) {
    std::vector<std::string> parts;
    for (std::size_t a = 0; a < others.size(); ++a)
        parts.push_back(fmt::format("{} = {}", header_of(s.axes[a]), others[a]));
    return parts.empty() ? "" : " at " + join(parts, ", ");
}

template <class What>
std::string from_text(const Sweep& s, const SweepChange<What>& change, const std::string& what) {
    return fmt::format("; at {} = {} (not at {}) {}", header_of(s.axes.back()),
                       count_text(static_cast<double>(change.at)), count_text(static_cast<double>(change.after)), what);
}

std::string flips_text(const Sweep& s) {
    std::string text;
    for (const BestAlong& along : s.best) {
        text += fmt::format("least {}{}: {}", name(along.criterion), others_text(s, along.others),
                            winner_text(s.subjects, along.at_first));
        if (along.changes.empty()) text += fmt::format(" at every {}", header_of(s.axes.back()));
        for (const SweepChange<int>& change : along.changes)
            text += from_text(s, change, winner_text(s.subjects, change.what));
        text += "\n";
    }
    for (const BoundAlong& along : s.bounds) {
        text += fmt::format("bound{} by {}", others_text(s, along.others), along.at_first);
        if (along.changes.empty()) text += fmt::format(" at every {}", header_of(s.axes.back()));
        for (const SweepChange<std::string>& change : along.changes) text += from_text(s, change, change.what);
        text += "\n";
    }
    return text;
}

}  // namespace

std::string to_text(const Sweep& s) {
    std::string text = s.subjects.size() == 1 ? table_of_one(s) : table_of_many(s);
    if (s.subjects.size() > 1) text += rates_text(s.points[0].outcomes);
    if (const std::string why = reasons(s); !why.empty()) text += "\n" + why;
    return text + "\n" + flips_text(s);
}

std::string to_csv(const Sweep& s) {
    std::vector<std::string> cells;
    for (const SweepAxis& axis : s.axes) append(cells, axis.axes);
    for (const Subject& subject : s.subjects)
        for (const std::string_view column : csv_columns)
            cells.push_back(
                csv_quoted(s.subjects.size() == 1 ? std::string(column) : fmt::format("{} {}", subject.label, column)));
    std::string text = join(cells, ",") + "\n";
    for (const SweepPoint& point : s.points) {
        cells.clear();
        for (std::size_t i = 0; i < s.axes.size(); ++i)
            cells.insert(cells.end(), s.axes[i].axes.size(), fmt::format("{}", point.sizes[i]));
        for (const Outcome& outcome : point.outcomes) cells.push_back(csv_cells(outcome));
        text += join(cells, ",") + "\n";
    }
    return text;
}

}  // namespace napkin
