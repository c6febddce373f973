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
std::string byte_rate(double v) { return quantity_text(v, "B/s"); }

class RooflineChart {
public:
    RooflineChart(const Machine& machine, const std::vector<KernelOnMachine>& kernels,
                  const std::vector<MeasuredPoint>& measured, const std::string& subject)
        : kernels_(kernels),
          measured_(measured),
          roofs_(roofs_of(machine, kernels)),
          slopes_(slopes_of(machine)),
          out_(chart_document(fmt::format("Roofline of {}{}", machine.name, subject.empty() ? "" : ": " + subject))) {
        out_.width = 880, out_.height = 500;
        for (const KernelOnMachine& k : kernels) flops_ += k.flops, bytes_ += k.memory_transfers_bytes();
        set_scales();
    }

    svg::Document draw() {
        add_title(out_);
        draw_frame(out_, x_, y_, {"arithmetic intensity, FLOP/byte", short_number, false}, {"FLOP/s", short_number, false});
        Labels labels(x_.from, y_.to, x_.to, y_.from);
        for (const KernelOnMachine& k : kernels_)
            if (k.flops > 0 && k.seconds > 0)
                for (const LevelLoad& level : k.levels)
                    if (level.transfers_bytes > 0)
                        labels.keep(x_(k.flops / level.transfers_bytes) - 6, y_(k.flops / k.seconds) - 6, 12, 12);
        add_roofs();
        for (const Slope& slope : slopes_) add_slope(slope);
        for (const KernelOnMachine& k : kernels_)
            if (k.flops > 0 && k.seconds > 0) add_kernel(k, labels);
        for (const MeasuredPoint& m : measured_)
            if (m.measured_s > 0 && flops_ > 0 && bytes_ > 0) add_measured(m, labels);
        out_.add(
            label(92, out_.height - 8,
                  "solid: datasheet; dashed: sustained; points: expected at each level; ring: no schedule is faster",
                  "small text-muted"));
        out_.description = join(said_, "; ") + ".";
        return std::move(out_);
    }

private:
    /// They hold the ridges, and each point with what bounds it there.
    void set_scales() {
        std::vector<double> xs{1}, ys;
        for (const Roof& r : roofs_) {
            ys.push_back(r.flops);
            for (const Slope& s : slopes_) xs.push_back(r.flops / s.bytes_per_s);
        }
        const double peak = roofs_.empty() ? 0 : roofs_.front().flops;
        for (const KernelOnMachine& k : kernels_) {
            if (k.flops <= 0 || k.seconds <= 0) continue;
            ys.push_back(k.flops / k.seconds);
            for (const LevelLoad& level : k.levels)
                if (level.transfers_bytes > 0) {
                    const double intensity = k.flops / level.transfers_bytes;
                    xs.push_back(intensity);
                    for (const Slope& s : slopes_)
                        if (peak <= 0 || intensity * s.bytes_per_s < peak) ys.push_back(intensity * s.bytes_per_s);
                }
        }
        for (const MeasuredPoint& m : measured_)
            if (m.measured_s > 0 && flops_ > 0) ys.push_back(flops_ / m.measured_s);
        if (ys.empty()) ys = {1e9, 1e12};
        ys.push_back(*max_element(ys) / 300);
        x_ = scale_of(xs, true, 92, 736), y_ = scale_of(ys, true, 440, 52);
    }

    /// A line for the datasheet's rate, and where it is known a dashed one for the sustained one.
    template <class LineAt>
    void add_rates(const std::string& name, double rate, double sustained, std::string (*text)(double),
                   const std::string& classes, LineAt line_at) {
        out_.add(titled(path(line_at(rate), "thick " + classes), fmt::format("{}: {}", name, text(rate))));
        if (sustained > 0)
            out_.add(titled(path(line_at(sustained), "dashed " + classes),
                            fmt::format("{} sustained: {}", name, text(sustained))));
        said_.push_back(fmt::format("{} {}", name, text(rate)));
    }

    void add_roofs() {
        double last_label = 0;
        for (const Roof& r : roofs_) {
            add_rates(r.name, r.flops, r.sustained, flop_rate, "no-fill ink",
                      [&](double rate) { return clipped_line(x_, y_, {x_.low, rate}, {x_.high, rate}); });
            const std::string text = fmt::format("{} {}", r.name, short_number(r.flops));
            // Beside the frame, those of roofs close to each other above one another.
            last_label = std::max(y_(r.flops) + 4, last_label + 13);
            out_.add(titled(label(x_.to + 8, last_label, fitted(text, 134, chart_small_text), "small"), text));
        }
    }

    void add_slope(const Slope& s) {
        const double highest = roofs_.empty() ? y_.high : roofs_.front().flops;
        add_rates(s.name, s.bytes_per_s, s.sustained, byte_rate, stroked(s.color),
                  [&](double rate) { return clipped_line(x_, y_, {x_.low, x_.low * rate}, {highest / rate, highest}); });
        // Along its foot: all slopes rise alike.
        const double foot = std::max(x_.low * 1.15, y_.low * 1.25 / s.bytes_per_s);
        const double at = y_(foot * s.bytes_per_s);
        if (at < y_.to + 8 || at > y_.from) return;
        const double rise = std::atan2(at - y_(10 * foot * s.bytes_per_s), x_(10 * foot) - x_(foot));
        out_.add(label(0, -5, fmt::format("{} {}", s.name, byte_rate(s.bytes_per_s)), "small halo " + inked(s.color))
                     .set("transform", fmt::format("translate({} {}) rotate({})", svg::number_text(x_(foot)),
                                                   svg::number_text(at), svg::number_text(-rise * 180 / 3.14159265358979))));
    }

    void add_kernel(const KernelOnMachine& k, Labels& labels) {
        const double reached = k.flops / k.seconds;
        // Levels that move as many bytes have one point, with a ring around it for each.
        std::vector<std::vector<const LevelLoad*>> points;
        const auto place = [&](const LevelLoad& level) { return x_(k.flops / level.transfers_bytes); };
        for (const LevelLoad& level : k.levels) {
            if (level.transfers_bytes <= 0) continue;
            const auto same = find_if(
                points, [&](const auto& point) { return std::abs(place(*point.front()) - place(level)) < 3; });
            same == points.end() ? points.push_back({&level}) : same->push_back(&level);
        }
        for (const std::vector<const LevelLoad*>& point : points) {
            const double at = place(*point.front());
            std::vector<std::string> names;
            double radius = 5 + 3 * static_cast<double>(point.size());
            for (const LevelLoad* level : point) {
                radius -= 3;
                out_.add(titled(
                    circle(at, y_(reached), radius, filled(color_of(*level))).data("kernel", k.kernel),
                    fmt::format("{} at {}: {} FLOP/byte, expected {} ({})", k.kernel, level->level.name,
                                short_number(k.flops / level->transfers_bytes), flop_rate(reached), k.bound_by)));
                names.push_back(level->level.name);
            }
            labels.add(out_, at + 3 * static_cast<double>(point.size() - 1), y_(reached),
                       fmt::format("{} @ {}", svg::shortened_name(k.kernel, 120, chart_small_text), join(names, ", ")),
                       "");
        }
        add_bound(k);
        said_.push_back(fmt::format("{} expected at {}, bound by {}", k.kernel, flop_rate(reached), k.bound_by));
    }

    /// That of the slope into the level.
    std::string color_of(const LevelLoad& level) const {
        const auto slope = find_if(slopes_, [&](const Slope& s) { return s.name == "into " + level.level.name; });
        return slope == slopes_.end() ? "ink" : slope->color;
    }

    void add_bound(const KernelOnMachine& k) {
        if (k.bound_s <= 0 || k.memory_transfers_bytes() <= 0) return;
        const double intensity = k.flops / k.memory_transfers_bytes(), bound = k.flops / k.bound_s;
        if (bound < y_.high)
            out_.add(titled(circle(x_(intensity), y_(bound), 5, "thick no-fill ink"),
                            fmt::format("{}: no schedule is above {}", k.kernel, flop_rate(bound))));
    }

    void add_measured(const MeasuredPoint& m, Labels& labels) {
        const double px = x_(flops_ / bytes_), py = y_(flops_ / m.measured_s);
        out_.add(titled(path(path_through({{px, py - 7}, {px + 6, py + 5}, {px - 6, py + 5}}, true), "fill-accent-4"),
                        fmt::format("measured {}: {}", m.name, flop_rate(flops_ / m.measured_s))));
        labels.add(out_, px, py, fmt::format("measured {}", m.name), "text-accent-4");
    }

    const std::vector<KernelOnMachine>& kernels_;
    const std::vector<MeasuredPoint>& measured_;
    std::vector<Roof> roofs_;  ///< the highest first
    std::vector<Slope> slopes_;
    double flops_ = 0, bytes_ = 0;  ///< of all kernels
    Scale x_, y_;
    svg::Document out_;
    std::vector<std::string> said_;
};

}  // namespace

svg::Document roofline_chart(const Machine& machine, const std::vector<KernelOnMachine>& kernels,
                             const std::vector<MeasuredPoint>& measured, const std::string& subject) {
    return RooflineChart(machine, kernels, measured, subject).draw();
}

}  // namespace napkin::draw
