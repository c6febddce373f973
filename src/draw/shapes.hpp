#pragma once
// What charts are drawn with, on top of svg.hpp: colours of series and levels in their uses, and texts of a chart's
// size.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw/svg.hpp"

namespace napkin::draw {

using svg::Anchor;
using svg::circle;
using svg::Element;
using svg::line;
using svg::path;
using svg::rect;

/// A document of the class `chart`, whose texts have 12 units, small ones 10 and big ones 14.
svg::Document chart_document(std::string title);
inline constexpr double chart_text = 12, chart_small_text = 10, chart_big_text = 14;

// Colours are names of the style sheet: "accent-0", "level-2", "ink". These are the classes of what has one:
std::string tint(std::string_view color);     ///< of a surface with its border
std::string wash(std::string_view color);     ///< of a pale surface without one
std::string filled(std::string_view color);   ///< of a surface
std::string stroked(std::string_view color);  ///< of a line
std::string inked(std::string_view color);    ///< of a text
/// The colours of series, in turn.
std::string series_color(std::size_t number);

/// The document's title above the chart, as much of it as the document is wide. Pre: its width is set.
void add_title(svg::Document& document);

/// A text of one line whose baseline is at y.
Element label(double x, double y, std::string_view text, std::string_view classes = "", Anchor anchor = Anchor::start);
/// The same upwards, with its middle here.
Element upward_label(double x, double y, std::string_view text, std::string_view classes = "");
/// What is shown where a pointer rests on the shape, and read out.
Element titled(Element shape, std::string_view title);
/// "M0 0L1 1…" through the points; closed: back to the first.
std::string path_through(const std::vector<std::pair<double, double>>& points, bool closed = false);
/// Lines of 45° within the rectangle, `step` apart.
std::string hatching(double x, double y, double width, double height, double step = 5);

/// As much of the text as fits, with "…" behind it where that is not all; nothing where that is no more than the dots.
std::string fitted(std::string_view text, double width, double size = chart_text);
double text_width(std::string_view text, double size = chart_text);

}  // namespace napkin::draw
