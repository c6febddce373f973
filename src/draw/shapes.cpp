#include "draw/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace napkin::draw {

svg::Document chart_document(std::string title) {
    svg::Document out;
    out.title = std::move(title);
    out.classes = "chart";
    return out;
}

void add_title(svg::Document& document) {
    // Bold letters are wider than the widths that are known.
    constexpr double bold = 1.12;
    document.add(titled(label(16, 26, fitted(document.title, (document.width - 32) / bold, chart_big_text), "big"),
                        document.title));
}

std::string tint(std::string_view color) { return fmt::format("tint fill-{0} {0}", color); }
std::string wash(std::string_view color) { return fmt::format("wash fill-{}", color); }
std::string filled(std::string_view color) { return fmt::format("fill-{}", color); }
std::string stroked(std::string_view color) { return fmt::format("no-fill {}", color); }
std::string inked(std::string_view color) { return fmt::format("text-{}", color); }
std::string series_color(std::size_t number) { return fmt::format("accent-{}", number % 6); }

Element label(double x, double y, std::string_view text, std::string_view classes, Anchor anchor) {
    return svg::text(x, y, text, anchor, classes);
}

Element upward_label(double x, double y, std::string_view text, std::string_view classes) {
    return svg::text(0, 0, text, Anchor::middle, classes)
        .set("transform", fmt::format("translate({} {}) rotate(-90)", svg::number_text(x), svg::number_text(y)));
}

Element titled(Element shape, std::string_view title) { return std::move(shape).titled(title); }

std::string path_through(const std::vector<std::pair<double, double>>& points, bool closed) {
    svg::PathText out;
    for (std::size_t i = 0; i < points.size(); ++i)
        i == 0 ? out.move(points[i].first, points[i].second) : out.to(points[i].first, points[i].second);
    if (closed) out.close();
    return out.str();
}

std::string hatching(double x, double y, double width, double height, double step) {
    svg::PathText out;
    // The line x + y = s, where it is within the rectangle.
    for (double s = step; s < width + height; s += step) {
        const double x1 = std::min(s, width), y2 = std::min(s, height);
        out.move(x + x1, y + s - x1).to(x + s - y2, y + y2);
    }
    return out.str();
}

std::string fitted(std::string_view text, double width, double size) {
    std::string out = svg::shortened(text, width, size);
    return out == "…" ? "" : out;
}

double text_width(std::string_view text, double size) { return svg::text_width(text, size); }

}  // namespace napkin::draw
