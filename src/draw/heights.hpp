#pragma once
// How high everything of one system stands. Every wire keeps one height from its first column to its last, the least
// that leaves room above it in each of them, so that wires run straight.
#include <map>
#include <utility>
#include <vector>

#include "draw/order.hpp"
#include "draw/place_system.hpp"

namespace napkin::draw {

constexpr double wire_gap = 20, text_gap = 17, array_gap = 30, text_after_wire = 26, box_above = 11, box_below = 11,
                 bracket_line = 17;

using WireKey = std::pair<ValueId, int>;  ///< a value and its wire, as the value lists them

struct Heights {
    std::map<WireKey, double> wires;
    std::vector<std::map<ValueId, double>> names;  ///< by data column of the system: of the values that are named there
    std::map<std::size_t, std::vector<double>> rows;  ///< by operation
    std::map<std::size_t, double> headers;            ///< by operation: of its label above its wires, where it has one
    double top = 0, bottom = 0;
};

/// Where the system's streams and subloops are named lies between `top` and the first wires.
Heights heights_of(const Ordered& ordered, const System& system, double top);

/// A value is named in the column in which it comes into being, and where a system begins.
bool is_labelled(const Ordered& ordered, const System& system, ValueId value, std::size_t column);
/// Above its wires, unless it has but one with the name on it.
bool has_name(const Ordered& ordered, const System& system, ValueId value, std::size_t column);
bool has_header(const Operation& operation);
/// Between the first line of an operation's label and its first wire, beyond what one line takes.
double extra_header(const Operation& operation);
/// In how many others a bracket lies.
std::size_t depth_of(const Ordered& ordered, const Bracket& bracket);

}  // namespace napkin::draw
