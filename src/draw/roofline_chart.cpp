#include "draw/roofline_chart.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "draw/plot.hpp"
#include "machine/peaks.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

struct Roof {
    std::string name;
    double flops = 0, sustained = 0;
};

/// A unit in use for its type; without kernels every unit that does FLOPs, of types with rates of their own.
std::vector<Roof> roofs_of(const Machine& machine, const std::vector<KernelOnMachine>& kernels) {
    std::set<std::pair<std::string, DType>> used;
    for (const KernelOnMachine& k : kernels)
        for (const UnitLoad& unit : k.units)
            if (unit.rate.unit == "fma" || unit.rate.unit == "tensor") used.emplace(unit.rate.unit, unit.rate.type);
    // What neither multiplies nor adds by them has the roof of the fused ones, of its types.
    if (used.empty())
        for (const KernelOnMachine& k : kernels)
            for (const UnitLoad& unit : k.units) used.emplace("fma", unit.rate.type);
    std::vector<Roof> out;
    for (const Unit& unit : machine.units)
        for (const auto& [type, rate] : unit.per_clock) {
            if (unit.name != "fma" && unit.name != "tensor") continue;
            if (!kernels.empty() && !used.contains({unit.name, type})) continue;
            const double peak = peak_per_s(machine, unit.name, type);
            if (peak <= 0) continue;
            const std::string called = fmt::format("{} {}", unit.name, name(type));
            const auto same = find_if(out, [&](const Roof& r) { return std::abs(r.flops / peak - 1) < 1e-6; });
            if (same == out.end())
                out.push_back({called, peak, unit.sustained.known() ? peak * unit.sustained.value : 0});
            else
                same->name += ", " + called;
        }
    sort(out, [](const Roof& a, const Roof& b) { return a.flops > b.flops; });
    return out;
}

struct Slope {
    std::string name;
    double bytes_per_s = 0, sustained = 0;
    std::string color;
};

std::vector<Slope> slopes_of(const Machine& machine) {
    std::vector<Slope> out;
    for (std::size_t l = 1; l < machine.levels.size(); ++l) {
        const Level& level = machine.levels[l];
        const double rate = total_bandwidth(level);
        if (rate > 0)
            out.push_back({fmt::format("into {}", level.name), rate,
                           level.sustained.known() ? rate * level.sustained.value : 0, series_color(l)});
    }
    return out;
}

std::string flop_rate(double v) { return quantity_text(v, "FLOP/s"); }

}  // namespace

svg::Document roofline_chart(const Machine& machine, const std::vector<KernelOnMachine>& kernels,
                             const std::vector<MeasuredPoint>& measured, const std::string& subject) {
    const std::vector<Roof> roofs = roofs_of(machine, kernels);
    const std::vector<Slope> slopes = slopes_of(machine);
    svg::Document out = chart_document(fmt::format("Roofline of {}{}", machine.name, subject.empty() ? "" : ": " + subject));
    out.width = 880, out.height = 500;
    add_title(out);

    double flops = 0, bytes = 0;
    std::vector<double> xs{1}, ys;
    for (const Roof& r : roofs) {
        ys.push_back(r.flops);
        for (const Slope& s : slopes) xs.push_back(r.flops / s.bytes_per_s);
    }
    const double peak = roofs.empty() ? 0 : roofs.front().flops;
    for (const KernelOnMachine& k : kernels) {
        flops += k.flops, bytes += k.memory_transfers_bytes();
        if (k.flops <= 0 || k.seconds <= 0) continue;
        ys.push_back(k.flops / k.seconds);
        for (const LevelLoad& level : k.levels)
            if (level.transfers_bytes > 0) {
                const double intensity = k.flops / level.transfers_bytes;
                xs.push_back(intensity);
                // What bounds it there is in the picture, too.
                for (const Slope& s : slopes)
                    if (peak <= 0 || intensity * s.bytes_per_s < peak) ys.push_back(intensity * s.bytes_per_s);
            }
    }
    for (const MeasuredPoint& m : measured)
        if (m.measured_s > 0 && flops > 0) ys.push_back(flops / m.measured_s);
    if (ys.empty()) ys = {1e9, 1e12};
    ys.push_back(*max_element(ys) / 300);
    const Scale x = scale_of(xs, true, 92, 736), y = scale_of(ys, true, 440, 52);
    draw_frame(out, x, y, {"arithmetic intensity, FLOP/byte", short_number, false}, {"FLOP/s", short_number, false});

    Labels labels(x.from, y.to, x.to, y.from);
    for (const KernelOnMachine& k : kernels)
        if (k.flops > 0 && k.seconds > 0)
            for (const LevelLoad& level : k.levels)
                if (level.transfers_bytes > 0)
                    labels.keep(x(k.flops / level.transfers_bytes) - 6, y(k.flops / k.seconds) - 6, 12, 12);
    const double highest = roofs.empty() ? y.high : roofs.front().flops;
    std::vector<std::string> said;
    double last_label = 0;
    for (const Roof& r : roofs) {
        out.add(titled(path(clipped_line(x, y, {x.low, r.flops}, {x.high, r.flops}), "thick no-fill ink"),
                       fmt::format("{}: {}", r.name, flop_rate(r.flops))));
        if (r.sustained > 0)
            out.add(titled(path(clipped_line(x, y, {x.low, r.sustained}, {x.high, r.sustained}), "dashed no-fill ink"),
                           fmt::format("{} sustained: {}", r.name, flop_rate(r.sustained))));
        const std::string text = fmt::format("{} {}", r.name, short_number(r.flops));
        // Beside the frame, those of roofs close to each other above one another.
        const double below = std::max(y(r.flops) + 4, last_label + 13);
        last_label = below;
        out.add(titled(label(x.to + 8, below, fitted(text, 134, chart_small_text), "small"), text));
        said.push_back(fmt::format("{} {}", r.name, flop_rate(r.flops)));
    }
    for (std::size_t i = 0; i < slopes.size(); ++i) {
        const Slope& s = slopes[i];
        const auto slope = [&](double rate) {
            return clipped_line(x, y, {x.low, x.low * rate}, {highest / rate, highest});
        };
        out.add(titled(path(slope(s.bytes_per_s), "thick " + stroked(s.color)),
                       fmt::format("{}: {}", s.name, quantity_text(s.bytes_per_s, "B/s"))));
        if (s.sustained > 0)
            out.add(titled(path(slope(s.sustained), "dashed " + stroked(s.color)),
                           fmt::format("{} sustained: {}", s.name, quantity_text(s.sustained, "B/s"))));
        said.push_back(fmt::format("{} {}", s.name, quantity_text(s.bytes_per_s, "B/s")));
        // Along its foot: all slopes rise alike.
        const double foot = std::max(x.low * 1.15, y.low * 1.25 / s.bytes_per_s);
        const double rise = std::atan2(y(foot * s.bytes_per_s) - y(10 * foot * s.bytes_per_s), x(10 * foot) - x(foot));
        const std::string text = fmt::format("{} {}", s.name, quantity_text(s.bytes_per_s, "B/s"));
        if (const double at = y(foot * s.bytes_per_s); at < y.to + 8 || at > y.from) continue;
        out.add(label(0, -5, text, "small halo " + inked(s.color))
                    .set("transform", fmt::format("translate({} {}) rotate({})", svg::number_text(x(foot)),
                                                  svg::number_text(y(foot * s.bytes_per_s)),
                                                  svg::number_text(-rise * 180 / 3.14159265358979))));
    }
    for (const KernelOnMachine& k : kernels) {
        if (k.flops <= 0 || k.seconds <= 0) continue;
        const double reached = k.flops / k.seconds;
        // Levels that move as many bytes have one point, with a ring around it for each.
        std::vector<std::vector<const LevelLoad*>> points;
        const auto place = [&](const LevelLoad& level) { return x(k.flops / level.transfers_bytes); };
        for (const LevelLoad& level : k.levels) {
            if (level.transfers_bytes <= 0) continue;
            const auto same = find_if(
                points, [&](const auto& point) { return std::abs(place(*point.front()) - place(level)) < 3; });
            same == points.end() ? points.push_back({&level}) : same->push_back(&level);
        }
        for (const std::vector<const LevelLoad*>& point : points) {
            std::vector<std::string> names;
            for (std::size_t i = 0; i < point.size(); ++i) {
                const LevelLoad& level = *point[i];
                const auto slope = find_if(slopes, [&](const Slope& s) { return s.name == "into " + level.level.name; });
                const std::string color = slope == slopes.end() ? "ink" : slope->color;
                const double radius = 5 + 3 * static_cast<double>(point.size() - 1 - i);
                out.add(titled(circle(place(*point.front()), y(reached), radius, filled(color)).data("kernel", k.kernel),
                               fmt::format("{} at {}: {} FLOP/byte, expected {} ({})", k.kernel, level.level.name,
                                           short_number(k.flops / level.transfers_bytes), flop_rate(reached), k.bound_by)));
                names.push_back(level.level.name);
            }
            labels.add(out, place(*point.front()) + 3 * static_cast<double>(point.size() - 1), y(reached),
                       fmt::format("{} @ {}", svg::shortened_name(k.kernel, 120, chart_small_text), join(names, ", ")),
                       "");
        }
        if (k.bound_s > 0 && k.memory_transfers_bytes() > 0) {
            const double intensity = k.flops / k.memory_transfers_bytes(), bound = k.flops / k.bound_s;
            if (bound < y.high)
                out.add(titled(circle(x(intensity), y(bound), 5, "thick no-fill ink"),
                               fmt::format("{}: no schedule is above {}", k.kernel, flop_rate(bound))));
        }
        said.push_back(fmt::format("{} expected at {}, bound by {}", k.kernel, flop_rate(reached), k.bound_by));
    }
    for (const MeasuredPoint& m : measured) {
        if (m.measured_s <= 0 || flops <= 0 || bytes <= 0) continue;
        const double px = x(flops / bytes), py = y(flops / m.measured_s);
        out.add(titled(path(path_through({{px, py - 7}, {px + 6, py + 5}, {px - 6, py + 5}}, true), "fill-accent-4"),
                       fmt::format("measured {}: {}", m.name, flop_rate(flops / m.measured_s))));
        labels.add(out, px, py, fmt::format("measured {}", m.name), "text-accent-4");
    }
    out.add(label(92, out.height - 8,
                  "solid: datasheet; dashed: sustained; points: expected at each level; ring: no schedule is faster",
                  "small text-muted"));
    out.description = join(said, "; ") + ".";
    return out;
}

}  // namespace napkin::draw
