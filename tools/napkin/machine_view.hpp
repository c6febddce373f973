#pragma once
// A machine as a report: levels, units, links, limits and ridge points, each figure with its source.
#include "machine/machine.hpp"
#include "machine/occupancy.hpp"
#include "report/report.hpp"

namespace napkin::cli {

/// Programs get beside each group of figures their `sources`, by the figures' names.
report::Section machine_report(const Machine& machine);
/// A row for each.
report::Section machines_report(const std::vector<Machine>& machines);
report::Section occupancy_report(const Machine& machine, const BlockShape& block, const Occupancy& occupancy);

}  // namespace napkin::cli
