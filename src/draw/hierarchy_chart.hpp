#pragma once
// The hierarchy of a machine as a graph (paper Fig. 7). Levels go from the largest memory down to the registers and the
// units, each in its colour. Between them are pipes with their rates, and links join the instances of one level.
#include "draw/shapes.hpp"
#include "machine/machine.hpp"

namespace napkin::draw {

svg::Document hierarchy_chart(const Machine& machine);

}  // namespace napkin::draw
