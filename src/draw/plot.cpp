#include "draw/plot.hpp"
#include "support/ranges.hpp"

#include <fmt/format.h>

#include <cmath>

namespace napkin::draw {

double Scale::operator()(double value) const {
    const double part = logarithmic ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low))
                                    : (value - low) / (high - low);
    return from + part * (to - from);
}

Scale scale_of(const std::vector<double>& values, bool logarithmic, double from, double to) {
    double low = INFINITY, high = -INFINITY;
    for (const double v : values)
        if (std::isfinite(v) && (!logarithmic || v > 0)) low = std::min(low, v), high = std::max(high, v);
    if (!(low <= high)) low = logarithmic ? 1 : 0, high = logarithmic ? 10 : 1;
    if (logarithmic) {
        const double room = std::max(1.25, std::pow(high / low, 0.06));
        return {low / room, high * room, from, to, true};
    }
    const double room = high > low ? 0.06 * (high - low) : std::max(1.0, std::abs(high)) * 0.5;
    // Amounts begin at nothing.
    return {low >= 0 ? 0 : low - room, high + room, from, to, false};
}

std::vector<double> ticks(const Scale& scale, bool binary) {
    std::vector<double> out;
    if (scale.logarithmic) {
        const double base = binary ? 2 : 10, span = std::log(scale.high / scale.low) / std::log(base);
        const double step = std::max(1.0, std::ceil(span / 9));
        double power = std::ceil(std::log(scale.low) / std::log(base) - 1e-9);
        // Steps of several powers stand at multiples of them, so that decades come out as thousands.
        power = std::ceil(power / step) * step;
        for (; std::pow(base, power) <= scale.high * (1 + 1e-9); power += step) out.push_back(std::pow(base, power));
        if (out.size() < 2 && !binary) {
            out.clear();
            for (double decade = std::floor(std::log10(scale.low)); decade <= std::log10(scale.high); ++decade)
                for (const double m : {1.0, 2.0, 5.0})
                    if (const double v = m * std::pow(10, decade); v >= scale.low && v <= scale.high) out.push_back(v);
        }
        return out;
    }
    const double raw = (scale.high - scale.low) / 8, decade = std::pow(10, std::floor(std::log10(raw)));
    const double step = (raw / decade > 5 ? 10 : raw / decade > 2 ? 5 : raw / decade > 1 ? 2 : 1) * decade;
    for (double v = std::ceil(scale.low / step) * step; v <= scale.high * (1 + 1e-9); v += step) out.push_back(v);
    return out;
}

namespace {
/// Three digits, and the letter of the power of a thousand that they count.
std::pair<std::string, std::string_view> in_thousands(double value) {
    if (value == 0 || !std::isfinite(value)) return {"0", ""};
    constexpr std::pair<double, std::string_view> powers[] = {
        {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (const auto& [factor, letter] : powers)
        if (std::abs(value) >= factor * 0.9999) return {fmt::format("{:.3g}", value / factor), letter};
    return {fmt::format("{:.3g}", value), ""};
}
}  // namespace

std::string short_number(double value) {
    const auto [digits, letter] = in_thousands(value);
    return fmt::format("{}{}", digits, letter);
}

std::string quantity_text(double value, std::string_view unit) {
    const auto [digits, letter] = in_thousands(value);
    return fmt::format("{} {}{}", digits, letter, unit);
}

std::string binary_number(double value) {
    constexpr std::pair<double, const char*> units[] = {{0x1p40, "Ti"}, {0x1p30, "Gi"}, {0x1p20, "Mi"}, {0x1p10, "Ki"}};
    for (const auto& [factor, letter] : units)
        if (value >= factor) return fmt::format("{:.3g}{}", value / factor, letter);
    return fmt::format("{:.4g}", value);
}

void draw_frame(svg::Document& out, const Scale& x, const Scale& y, const AxisText& x_text, const AxisText& y_text) {
    for (const double v : ticks(x, x_text.binary)) {
        out.add(line(x(v), y.from, x(v), y.to, "faint thin no-fill"));
        out.add(label(x(v), y.from + 16, x_text.tick(v), "small text-muted", Anchor::middle));
    }
    for (const double v : ticks(y, y_text.binary)) {
        out.add(line(x.from, y(v), x.to, y(v), "faint thin no-fill"));
        out.add(label(x.from - 7, y(v) + 4, y_text.tick(v), "small text-muted", Anchor::end));
    }
    out.add(path(path_through({{x.from, y.to}, {x.from, y.from}, {x.to, y.from}}), "muted no-fill"));
    out.add(label((x.from + x.to) / 2, y.from + 36, x_text.title, "", Anchor::middle));
    out.add(upward_label(x.from - 58, (y.from + y.to) / 2, y_text.title, ""));
}

bool Labels::is_free(const Box& b) const {
    if (b.x < left_ || b.y < top_ || b.x + b.width > right_ || b.y + b.height > bottom_) return false;
    return none_of(taken_, [&](const Box& t) {
        return b.x < t.x + t.width && t.x < b.x + b.width && b.y < t.y + t.height && t.y < b.y + b.height;
    });
}

bool Labels::add(svg::Document& out, double x, double y, const std::string& text, const std::string& classes, double size) {
    const double width = text_width(text, size), height = size + 3;
    for (int away = 0; away < 4; ++away)
        for (const auto& [dx, dy] : {std::pair{1, 0}, {1, -1}, {1, 1}, {-1, 0}, {-1, -1}, {-1, 1}}) {
            const double left = dx > 0 ? x + 8 : x - 8 - width;
            const Box box{left, y - height / 2 + dy * (10 + 14.0 * away), width, height};
            if (!is_free(box)) continue;
            taken_.push_back(box);
            out.add(label(left, box.y + height - 4, text, (size < 12 ? "small " : "") + classes));
            return true;
        }
    return false;
}

std::string clipped_line(const Scale& x, const Scale& y, std::pair<double, double> a, std::pair<double, double> b) {
    // In the drawing's units, where the line is straight.
    const double x1 = x(a.first), y1 = y(a.second), dx = x(b.first) - x1, dy = y(b.second) - y1;
    double from = 0, to = 1;
    const auto cut = [&](double p, double d, double low, double high) {
        if (d == 0) {
            if (p < low || p > high) to = -1;
            return;
        }
        const double t1 = (low - p) / d, t2 = (high - p) / d;
        from = std::max(from, std::min(t1, t2)), to = std::min(to, std::max(t1, t2));
    };
    cut(x1, dx, std::min(x.from, x.to), std::max(x.from, x.to));
    cut(y1, dy, std::min(y.from, y.to), std::max(y.from, y.to));
    if (from >= to) return "";
    return path_through({{x1 + from * dx, y1 + from * dy}, {x1 + to * dx, y1 + to * dy}});
}

}  // namespace napkin::draw
