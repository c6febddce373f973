#pragma once
// A machine as people and programs read it: levels, units, links, limits and ridge points, each figure with its source.
#include "machine/machine.hpp"
#include "machine/occupancy.hpp"
#include "napkin/command.hpp"

namespace napkin::cli {

/// Tables; figures carry the number of their source, and the sources stand at the end.
std::string machine_text(const Machine& machine, bool color);
/// Everything that the text has. Beside each group of figures stand its `sources`, by the figures' names.
Json machine_json(const Machine& machine);

/// "1979 TFLOP/s", "768 GFLOP/s".
std::string flops_text(double flop_per_s);
/// The peaks that tell machines apart: the tensor cores' in 16 and 8 bits, and multiply-adds in f32.
std::string peaks_text(const Machine& machine);

std::string occupancy_text(const Machine& machine, const BlockShape& block, const Occupancy& occupancy);
Json occupancy_json(const BlockShape& block, const Occupancy& occupancy);

}  // namespace napkin::cli
