#pragma once
// What charts with two axes have in common: scales, their ticks, the frame, and labels that keep clear of each other.
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw/shapes.hpp"

namespace napkin::draw {

/// From values to places of the drawing.
struct Scale {
    double low = 0, high = 1;  ///< of values; both above 0 where it is logarithmic
    double from = 0, to = 1;   ///< of the drawing
    bool logarithmic = false;
    [[nodiscard]] double operator()(double value) const;
};
/// The scale of the values, from the least to the greatest, with some room. Values that are not finite, and on
/// a logarithmic scale those not above 0, are left out.
Scale scale_of(const std::vector<double>& values, bool logarithmic, double from, double to);
/// Powers of ten, or of two where `binary`; on a linear scale multiples of 1, 2 or 5 times one. At most about ten.
std::vector<double> ticks(const Scale& scale, bool binary = false);

/// "3.35T", "989G", "1.5k", "0.2", "3.2e-07".
std::string short_number(double value);
/// The same with its unit: "3.35 TB/s", "512 B/s".
std::string quantity_text(double value, std::string_view unit);
/// "64Ki" of powers of two from 2^10 on, else plain.
std::string binary_number(double value);

struct AxisText {
    std::string title;
    std::function<std::string(double)> tick = short_number;
    bool binary = false;
};
/// Grid, ticks and titles, around the scales' ranges (the y scale runs from its bottom to its top).
void draw_frame(svg::Document& out, const Scale& x, const Scale& y, const AxisText& x_text, const AxisText& y_text);

/// Places for labels: each goes to the first of some places where it meets none before it and stays within the bounds.
class Labels {
public:
    Labels(double left, double top, double right, double bottom)
        : left_(left), top_(top), right_(right), bottom_(bottom) {}
    /// Keeps a rectangle free.
    void keep(double x, double y, double width, double height) { taken_.push_back({x, y, width, height}); }
    /// Beside a point. Where no place is free, no label is drawn, and the result is false: a title may still say it.
    bool add(svg::Document& out, double x, double y, const std::string& text, const std::string& classes, double size = 10);

private:
    struct Box {
        double x, y, width, height;
    };
    [[nodiscard]] bool is_free(const Box& box) const;
    double left_, top_, right_, bottom_;
    std::vector<Box> taken_;
};

/// A part of a line between two points that is within the scales' ranges, as a path; empty where none is.
std::string clipped_line(const Scale& x, const Scale& y, std::pair<double, double> a, std::pair<double, double> b);

}  // namespace napkin::draw
