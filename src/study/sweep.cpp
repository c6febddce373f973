#include "study/sweep.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "support/ranges.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

Diagnostic error(std::string code, std::string message, std::string expected, std::string hint = "") {
    Diagnostic d{
        .code = std::move(code), .message = std::move(message), .expected = std::move(expected), .hint = std::move(hint)};
    if (d.code == "bad-sweep") d.exit_code = ExitCode::usage;
    return d;
}

Status check_axes(const std::vector<Subject>& subjects, const std::vector<SweepAxis>& axes) {
    std::set<std::string> known, seen;
    for (const Subject& subject : subjects)
        for (const Axis& axis : subject.diagram.axes)
            if (!subject.fixed.contains(axis.name)) known.insert(axis.name);
    const std::vector<std::string> names(known.begin(), known.end());
    std::size_t points = 1;
    for (const SweepAxis& sweep : axes) {
        for (const std::string& axis : sweep.axes) {
            if (!known.contains(axis)) {
                return error("unknown-axis", fmt::format("--sweep: {} has no axis {}", subjects[0].diagram.name, axis),
                             "one of " + join(names, ", "), did_you_mean(axis, names));
            }
            if (!seen.insert(axis).second)
                return error("bad-sweep", fmt::format("--sweep gives {} twice", axis), "each axis once");
        }
        points *= sweep.sizes.size();
        const bool is_planned = none_of(subjects, [](const Subject& s) { return s.query.closed_form; });
        if (is_planned && points * subjects.size() > max_sweep_plans)
            return error("bad-sweep", fmt::format("--sweep asks for more than {} plans", max_sweep_plans),
                         "fewer sizes, or a larger step", "--closed-form estimates up to 10000 points of GPUs");
        if (points > max_sweep_points)
            return error("bad-sweep", fmt::format("--sweep asks for more than {} points", max_sweep_points),
                         "fewer sizes, or a larger step");
    }
    return Done{};
}

/// What the points from `first` on say along the last axis: at the first, and where it changes.
template <class What, class Said>
std::pair<What, std::vector<SweepChange<What>>> along_last(const Sweep& s, std::size_t first, Said said) {
    const std::vector<std::int64_t>& sizes = s.axes.back().sizes;
    What before = said(s.points[first]);
    std::pair<What, std::vector<SweepChange<What>>> out{before, {}};
    for (std::size_t i = 1; i < sizes.size(); ++i) {
        What here = said(s.points[first + i]);
        if (here != before) out.second.push_back({sizes[i - 1], sizes[i], here});
        before = std::move(here);
    }
    return out;
}

/// The best by every criterion that some subject knows, or what binds the only subject, for the line of points that
/// begins at `first`.
void add_along(Sweep& s, std::size_t first) {
    const std::vector<std::int64_t>& sizes = s.points[first].sizes;
    const std::vector<std::int64_t> others(sizes.begin(), sizes.end() - 1);
    if (s.subjects.size() == 1) {
        auto [at_first, changes] = along_last<std::string>(s, first, [](const SweepPoint& point) {
            const auto& figures = point.outcomes[0].figures;
            return figures ? figures->bound_by : "nothing";
        });
        s.bounds.push_back({others, std::move(at_first), std::move(changes)});
        return;
    }
    for (const Criterion criterion : all_criteria) {
        const auto best = [&](const SweepPoint& point) { return best_of(point.outcomes, criterion); };
        auto [at_first, changes] = along_last<int>(s, first, best);
        if (at_first != nobody || !changes.empty()) s.best.push_back({criterion, others, at_first, std::move(changes)});
    }
}

/// Every combination of sizes, the last axis fastest.
std::vector<SweepPoint> points_of(const std::vector<SweepAxis>& axes) {
    std::vector<SweepPoint> out(1);
    for (const SweepAxis& axis : axes) {
        std::vector<SweepPoint> longer;
        for (const SweepPoint& point : out)
            for (const std::int64_t size : axis.sizes) {
                longer.push_back(point);
                longer.back().sizes.push_back(size);
            }
        out = std::move(longer);
    }
    return out;
}

}  // namespace

AxisSizes sizes_at(const std::vector<SweepAxis>& axes, const std::vector<std::int64_t>& sizes) {
    AxisSizes out;
    for (std::size_t i = 0; i < axes.size(); ++i)
        for (const std::string& axis : axes[i].axes) out[axis] = sizes[i];
    return out;
}

Result<Sweep> sweep(std::vector<Subject> subjects, const std::vector<SweepAxis>& axes) {
    if (const Status good = check_axes(subjects, axes); !good) return good.errors();
    Sweep out{std::move(subjects), axes, points_of(axes), {}, {}};
    std::vector<std::optional<Result<std::vector<Outcome>>>> costs(out.points.size());
    share_out(costs.size(),
              [&](std::size_t i) { costs[i] = outcomes_at(out.subjects, sizes_at(axes, out.points[i].sizes)); });
    bool runs = false;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        if (!costs[i]->ok()) return costs[i]->errors();
        out.points[i].outcomes = std::move(*costs[i]).value();
        runs = runs || any_of(out.points[i].outcomes, [](const Outcome& o) { return o.figures.has_value(); });
    }
    if (!runs) return out.points.front().outcomes.front().why;
    for (std::size_t first = 0; first < out.points.size(); first += axes.back().sizes.size()) add_along(out, first);
    return out;
}

}  // namespace napkin
