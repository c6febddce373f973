#pragma once
// Drawings as values: shapes and texts with classes, whose colours one style sheet says, in light and in dark. Texts stay text, in fonts that
// exist everywhere, and every drawing says in words what it shows.
#include <string>
#include <string_view>
#include <vector>

#include "draw/element.hpp"

namespace napkin::draw {

struct Drawing {
    double width = 0, height = 0;
    std::string title, description;  ///< for those who do not see it
    std::vector<Element> shapes;
    void add(Element shape) { shapes.push_back(std::move(shape)); }
};

enum class Anchor : std::uint8_t { start, middle, end };

Element line(double x1, double y1, double x2, double y2, std::string classes);
Element rect(double x, double y, double width, double height, std::string classes, double radius = 0);
Element circle(double x, double y, double radius, std::string classes);
Element path(std::string commands, std::string classes);
/// Its baseline is at y.
Element label(double x, double y, std::string text, std::string classes = "", Anchor anchor = Anchor::start);
/// What is shown where a pointer rests on the shape, and read out.
Element titled(Element shape, std::string title);
/// "M0 0L1 1…" through the points; closed: back to the first.
std::string path_through(const std::vector<std::pair<double, double>>& points, bool closed = false);
/// Lines of 45° within the rectangle, `step` apart.
std::string hatching(double x, double y, double width, double height, double step = 5);

/// What a text of the style sheet's font takes, estimated on the safe side; `size` in units of the drawing.
double text_width(std::string_view text, double size = 12);
/// The text, or as much of it as fits with "…" behind it; nothing where that is no more than the dots.
std::string fitted(std::string_view text, double width, double size = 12);

/// The colours of series, in turn: "c0" to "c5", whichever the number.
std::string series_class(std::size_t number);

/// The style sheet of all drawings; a class `dark` or `light` around them overrides what the reader's system prefers.
std::string_view style_sheet();

/// As an element within a page that has the style sheet.
Element svg_element(const Drawing& drawing);
/// As a file.
std::string svg_file(const Drawing& drawing);

}  // namespace napkin::draw
