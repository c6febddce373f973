#pragma once
// A place for the columns of one system: widths by what is written in them, heights by heights.hpp.
#include <vector>

#include "draw/diagram_picture.hpp"
#include "draw/order.hpp"

namespace napkin::draw {

/// Widths of the columns: data column i stands at 2·i, the column of operations behind it at 2·i + 1.
std::vector<double> column_widths(const Ordered& ordered);

/// Data columns from..to, and the operations between them.
struct System {
    std::size_t from = 0, to = 0;
};
/// With every wire labelled in its first column.
double system_width(const Ordered& ordered, const std::vector<double>& widths, std::size_t from, std::size_t to);

struct Extent {
    double right = 0, bottom = 0;
};
Extent place_system(const Ordered& ordered, const std::vector<double>& widths, const System& system, double left,
                    double top, Picture& picture);

}  // namespace napkin::draw
