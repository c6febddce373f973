#pragma once
// A layout as a grid of coloured cells. Each cell shows the value that the layout gives, coloured by its bank of shared
// memory. Where threads hold the values, it shows the thread and its register, coloured by the thread.
#include "algebra/held_layout.hpp"
#include "draw/shapes.hpp"
#include "support/result.hpp"

namespace napkin::draw {

struct LayoutChartOptions {
    std::int64_t value_bytes = 2;  ///< of a value, for its bank
    std::int64_t banks = 32, bank_bytes = 4;
};

/// Errors: too-large, where cells could not be read.
Result<svg::Document> layout_chart(const layouts::HeldLayout& layout, const std::string& text,
                                   const LayoutChartOptions& options = {});

}  // namespace napkin::draw
