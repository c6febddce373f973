#pragma once
// What stands in a box: a short formula on at most three lines. A longer one is named f₁, f₂, …; the picture says below
// what each name stands for.
#include <string>
#include <vector>

#include "draw/circuit.hpp"

namespace napkin::draw {

constexpr double box_text_width = 165;  ///< pixels, of a line in a box
constexpr std::size_t most_box_lines = 3;
constexpr double box_line_height = 13;

/// The lines of a label, broken before operators and after commas. A line may be wider where there is no such place.
std::vector<svg::Label> box_lines(const svg::Label& label);

/// The circuit with names in place of labels that do not fit into a box. Each named formula becomes a line of `legend`;
/// equal ones have one name.
Circuit with_short_labels(Circuit circuit, std::vector<std::string>& legend);

}  // namespace napkin::draw
