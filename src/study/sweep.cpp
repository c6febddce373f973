#include "study/sweep.hpp"

#include <fmt/format.h>

#include <set>

#include "support/ranges.hpp"
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
        if (points > max_sweep_points)
            return error("bad-sweep", fmt::format("--sweep asks for more than {} points", max_sweep_points),
                         "fewer sizes, or a larger step");
    }
    return Done{};
}

/// The best along the last axis by every criterion that some subject knows, for the line of points that begins at
/// `first`.
Status best_along(CostTable& table, const std::vector<SweepAxis>& axes, std::size_t first, Sweep& out) {
    const std::size_t count = axes.back().sizes.size();
    for (const Criterion criterion : all_criteria) {
        const auto begin = out.points.begin() + static_cast<std::ptrdiff_t>(first);
        const bool known = std::any_of(begin, begin + static_cast<std::ptrdiff_t>(count), [&](const SweepPoint& point) {
            return best_of(point.outcomes, criterion) != nobody;
        });
        if (!known) continue;
        std::vector<std::int64_t> sizes = begin->sizes;
        const auto best = [&](std::int64_t size) -> Result<int> {
            sizes.back() = size;
            const auto outcomes = table.at(sizes_at(axes, sizes));
            if (!outcomes) return outcomes.errors();
            return best_of(*outcomes, criterion);
        };
        auto flips = find_flips(axes.back().sizes, table.looks_near_flips(), best);
        if (!flips) return flips.errors();
        std::vector<std::int64_t> others(begin->sizes.begin(), begin->sizes.end() - 1);
        out.best.push_back({criterion, std::move(others), best_of(begin->outcomes, criterion), std::move(flips).value()});
    }
    return Done{};
}

std::string binds(const Outcome& outcome) { return outcome.figures ? outcome.figures->bound_by : "nothing"; }

/// What binds the only subject, for the line of points that begins at `first`.
Status bound_along(CostTable& table, const std::vector<SweepAxis>& axes, std::size_t first, Sweep& out) {
    std::vector<std::string> kinds;  // flips are between positions
    std::vector<std::int64_t> sizes = out.points[first].sizes;
    const auto kind = [&](std::int64_t size) -> Result<int> {
        sizes.back() = size;
        const auto outcomes = table.at(sizes_at(axes, sizes));
        if (!outcomes) return outcomes.errors();
        const std::string found = binds((*outcomes)[0]);
        const auto known = find(kinds, found);
        const auto position = known - kinds.begin();
        if (known == kinds.end()) kinds.push_back(found);
        return static_cast<int>(position);
    };
    const auto flips = find_flips(axes.back().sizes, table.looks_near_flips(), kind);
    if (!flips) return flips.errors();
    BoundAlong along{{sizes.begin(), sizes.end() - 1}, binds(out.points[first].outcomes[0]), {}};
    for (const Flip& flip : *flips) along.changes.push_back({flip.at, kinds[at(flip.after)]});
    out.bounds.push_back(std::move(along));
    return Done{};
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
    CostTable table(by_closed_form(std::move(subjects)));
    Sweep out{table.subjects(), axes, {}, {}, {}};
    std::vector<std::size_t> at(axes.size(), 0);
    bool runs = false;
    for (bool more = true; more;) {
        SweepPoint point;
        for (std::size_t i = 0; i < axes.size(); ++i) point.sizes.push_back(axes[i].sizes[at[i]]);
        auto outcomes = table.at(sizes_at(axes, point.sizes));
        if (!outcomes) return outcomes.errors();
        point.outcomes = std::move(outcomes).value();
        runs = runs || any_of(point.outcomes, [](const Outcome& o) { return o.figures.has_value(); });
        out.points.push_back(std::move(point));
        more = false;
        for (std::size_t i = axes.size(); i-- > 0 && !more;) {
            if (++at[i] < axes[i].sizes.size()) {
                more = true;
            } else {
                at[i] = 0;
            }
        }
    }
    if (!runs) return out.points.front().outcomes.front().why;
    const auto along = out.subjects.size() == 1 ? bound_along : best_along;
    for (std::size_t first = 0; first < out.points.size(); first += axes.back().sizes.size())
        if (const Status found = along(table, axes, first, out); !found) return found.errors();
    return out;
}

}  // namespace napkin
