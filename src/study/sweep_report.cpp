// A sweep as a report: a table, with what changes below it.
#include <fmt/format.h>

#include <set>

#include "study/outcome_columns.hpp"
#include "study/report.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using report::Json;
using report::Section;
using report::Value;

/// {"b": 2}: the axes but the last; and the same for people, " at b = 2".
Json others_json(const Sweep& s, const std::vector<std::int64_t>& others) {
    Json out = Json::object();
    for (std::size_t i = 0; i < others.size(); ++i)
        for (const std::string& axis : s.axes[i].axes) out[axis] = others[i];
    return out;
}
std::string at_text(const Sweep& s, const std::vector<std::int64_t>& sizes) {
    std::vector<std::string> parts;
    for (std::size_t a = 0; a < sizes.size(); ++a)
        parts.push_back(fmt::format("{} = {}", names_text(s.axes[a].axes), sizes[a]));
    return parts.empty() ? "" : " at " + join(parts, ", ");
}

report::Table points(const Sweep& s, const std::vector<std::string>& labels) {
    report::Table out{"points", "", {}, {}};
    // Tied axes are one column for people.
    for (const SweepAxis& axis : s.axes)
        for (const std::string& name : axis.axes)
            out.columns.push_back({"sizes/" + name, name == axis.axes.front() ? names_text(axis.axes) : ""});
    const bool is_one = labels.size() == 1;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!is_one) out.columns.push_back({"", labels[i]});
        add_columns(out, fmt::format("results/[{}]/", i), is_one ? "" : labels[i], is_one);
    }
    std::set<Criterion> criteria;
    for (const BestAlong& best : s.best) criteria.insert(best.criterion);
    if (!is_one)
        for (const Criterion criterion : all_criteria) {
            const std::string least = fmt::format("least {}", name(criterion));
            out.columns.push_back(
                {fmt::format("best/{}", name(criterion)), criteria.contains(criterion) ? least : "", least});
        }
    for (const SweepPoint& point : s.points) {
        std::vector<Value>& row = out.rows.emplace_back();
        for (std::size_t a = 0; a < s.axes.size(); ++a)
            row.insert(row.end(), s.axes[a].axes.size(), report::count(point.sizes[a]));
        for (const Outcome& outcome : point.outcomes) {
            if (!is_one) row.push_back(outcome.figures ? report::seconds(outcome.figures->seconds) : report::shown());
            add_values(row, outcome);
        }
        if (is_one) continue;
        for (const Criterion criterion : all_criteria) {
            const int best = best_of(point.outcomes, criterion);
            row.push_back({winner_json(best, labels), winner_text(best, labels)});
        }
    }
    return out;
}

/// Why subjects do not run, or have no plan, each reason once with the first size at which it stands.
void add_reasons(Section& out, const Sweep& s, const std::vector<std::string>& labels) {
    const auto add = [&](std::size_t i, const char* what, const auto& why) {
        const auto point = find_if(s.points, [&](const SweepPoint& p) { return !why(p.outcomes[i]).empty(); });
        if (point == s.points.end()) return;
        out.text(fmt::format("{} {}{}: {}", labels[i], what, at_text(s, point->sizes), why(point->outcomes[i])));
    };
    for (std::size_t i = 0; i < labels.size(); ++i) {
        add(i, "does not run", [](const Outcome& o) { return o.figures ? "" : o.why.message; });
        add(i, "is estimated by a closed form", [](const Outcome& o) { return o.figures ? o.figures->no_plan : ""; });
    }
}

/// "; at q = 4096 (not at 2048) h200"
template <class What>
std::string change_text(const Sweep& s, const SweepChange<What>& change, const std::string& what) {
    return fmt::format("; at {} = {} (not at {}) {}", names_text(s.axes.back().axes),
                       count_text(static_cast<double>(change.at)), count_text(static_cast<double>(change.after)), what);
}

void add_flips(Section& out, const Sweep& s, const std::vector<std::string>& labels) {
    const std::vector<std::string>& axes = s.axes.back().axes;
    Json flips = Json::array(), bounds = Json::array();
    const std::string everywhere = " at every " + names_text(axes);
    for (const BestAlong& along : s.best) {
        std::string text = fmt::format("least {}{}: {}{}", name(along.criterion), at_text(s, along.others),
                                       winner_text(along.at_first, labels), along.changes.empty() ? everywhere : "");
        int before = along.at_first;
        for (const SweepChange<int>& change : along.changes) {
            text += change_text(s, change, winner_text(change.what, labels));
            flips.push_back({{"by", name(along.criterion)},
                             {"axes", axes},
                             {"at", change.at},
                             {"not_at", change.after},
                             {"before", winner_json(std::exchange(before, change.what), labels)},
                             {"after", winner_json(change.what, labels)},
                             {"sizes", others_json(s, along.others)}});
        }
        out.text(text);
    }
    for (const BoundAlong& along : s.bounds) {
        std::string text = fmt::format("bound{} by {}{}", at_text(s, along.others), along.at_first,
                                       along.changes.empty() ? everywhere : "");
        Json changes = Json::array();
        for (const SweepChange<std::string>& change : along.changes) {
            text += change_text(s, change, change.what);
            changes.push_back({{"at", change.at}, {"not_at", change.after}, {"bound_by", change.what}});
        }
        out.text(text);
        bounds.push_back({{"axes", axes},
                          {"sizes", others_json(s, along.others)},
                          {"at_first", along.at_first},
                          {"changes", std::move(changes)}});
    }
    out.data("flips", std::move(flips)), out.data("bounds", std::move(bounds));
}

}  // namespace

Section report_of(const Sweep& s) {
    const std::vector<std::string> labels = labels_of(s.subjects);
    Section out;
    out.list("subjects", s.subjects,
             [](const Subject& of) { return Json{{"label", of.label}, {"diagram", of.diagram.name}}; });
    out.list("axes", s.axes, [](const SweepAxis& of) { return Json{{"axes", of.axes}, {"sizes", of.sizes}}; });
    out.table(points(s, labels));
    out.text(rates_text(s.points[0].outcomes));
    add_reasons(out, s, labels);
    out.text("\n");
    add_flips(out, s, labels);
    return out;
}

}  // namespace napkin
