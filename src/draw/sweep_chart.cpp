#include "draw/sweep_chart.hpp"

#include <fmt/format.h>

#include <map>

#include "draw/plot.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

struct SweptLine {
    std::string name;
    std::vector<std::pair<double, double>> expected, bound;  ///< size and seconds
    std::vector<std::string> bound_by;
};

std::vector<SweptLine> lines_of(const Sweep& sweep) {
    std::vector<SweptLine> out;
    std::map<std::pair<std::vector<std::int64_t>, std::size_t>, std::size_t> known;
    for (const SweepPoint& point : sweep.points) {
        const std::vector<std::int64_t> others(point.sizes.begin(), point.sizes.end() - 1);
        for (std::size_t s = 0; s < point.outcomes.size(); ++s) {
            const auto& figures = point.outcomes[s].figures;
            if (!figures) continue;
            const auto [place, is_new] = known.emplace(std::pair{others, s}, out.size());
            if (is_new) {
                std::vector<std::string> parts;
                if (sweep.subjects.size() > 1) parts.push_back(sweep.subjects[s].label);
                for (std::size_t a = 0; a < others.size(); ++a)
                    parts.push_back(fmt::format("{} = {}", names_text(sweep.axes[a].axes), others[a]));
                if (!figures->no_plan.empty()) parts.push_back("estimated by a closed form");
                out.push_back({parts.empty() ? "expected" : join(parts, ", "), {}, {}, {}});
            }
            SweptLine& line = out[place->second];
            const auto size = static_cast<double>(point.sizes.back());
            line.expected.emplace_back(size, figures->seconds);
            if (figures->bound_s > 0) line.bound.emplace_back(size, figures->bound_s);
            line.bound_by.push_back(figures->bound_by);
        }
    }
    return out;
}

}  // namespace

svg::Document sweep_chart(const Sweep& sweep) {
    const std::vector<SweptLine> lines = lines_of(sweep);
    const std::string axis = names_text(sweep.axes.back().axes);
    const napkin::Subject& first = sweep.subjects.front();
    svg::Document out = chart_document(fmt::format("Time of {} over {}", first.diagram.name, axis));
    out.width = 760, out.height = 480 + 18 * static_cast<double>((lines.size() + 1) / 2);
    add_title(out);
    std::vector<double> xs, ys;
    for (const SweptLine& l : lines) {
        for (const auto& [size, seconds] : l.expected) xs.push_back(size), ys.push_back(seconds);
        for (const auto& [size, seconds] : l.bound) ys.push_back(seconds);
    }
    const bool binary = !xs.empty() && *max_element(xs) >= 4 * *min_element(xs);
    const Scale x = scale_of(xs, binary, 92, 736), y = scale_of(ys, true, 400, 52);
    draw_frame(out, x, y, {axis, binary_number, binary}, {"seconds", [](double v) { return seconds_text(v); }, false});
    std::vector<std::string> said;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const SweptLine& l = lines[i];
        const std::string color = series_color(i);
        const auto drawn = [&](const std::vector<std::pair<double, double>>& points, const std::string& classes) {
            std::vector<std::pair<double, double>> at;
            for (const auto& [size, seconds] : points) at.emplace_back(x(size), y(seconds));
            if (!at.empty()) out.add(path(path_through(at), classes + " " + stroked(color)));
        };
        drawn(l.bound, "dashed thin");
        drawn(l.expected, "thick");
        for (std::size_t p = 0; p < l.expected.size(); ++p)
            out.add(titled(circle(x(l.expected[p].first), y(l.expected[p].second), 3.5, filled(color)),
                           fmt::format("{}, {} = {}: {}, bound by {}", l.name, axis, l.expected[p].first,
                                       seconds_text(l.expected[p].second), l.bound_by[p])));
        const double lx = 92 + 322 * static_cast<double>(i % 2), ly = 458 + 18 * static_cast<double>(i / 2);
        out.add(line(lx, ly - 4, lx + 22, ly - 4, "thick " + stroked(color)));
        out.add(label(lx + 30, ly, fitted(l.name, 280), ""));
        if (!l.expected.empty())
            said.push_back(fmt::format("{}: {} at {} = {} to {} at {}", l.name, seconds_text(l.expected.front().second),
                                       axis, l.expected.front().first, seconds_text(l.expected.back().second),
                                       l.expected.back().first));
    }
    Labels labels(x.from, y.to, out.width, y.from);
    for (const BestAlong& best : sweep.best) {
        if (best.criterion != Criterion::time) continue;
        for (const SweepChange<int>& change : best.changes) {
            const double at = x(static_cast<double>(change.at));
            out.add(line(at, y.from, at, y.to, "muted no-fill dotted"));
            labels.add(out, at, y.to + 10, fmt::format("{}", change.at), "text-muted");
        }
    }
    out.add(label(736, out.height - 12, "thick: expected; dashed: no schedule is faster", "small text-muted", Anchor::end));
    out.description = join(said, "; ") + ".";
    return out;
}

}  // namespace napkin::draw
