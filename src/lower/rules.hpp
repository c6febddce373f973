#pragma once
// The rules that a schedule keeps: the verifier of what was planned or overridden. What single choices may do is in
// legality.hpp.
#include <string>
#include <vector>

#include "schedule/rule_report.hpp"

namespace napkin {

/// All broken rules; none when the scheduled kernel is sound. The rules are about:
///  - atoms: loops over just the axes of their statements, vectors along an axis that is contiguous or reduced, a
///    register block that fits the registers, cuts of sums alone;
///  - fused statements: all go along the panels of the kernel's vector axis, and a fused reduction may run in its
///    leader's loops;
///  - split-K: a K block for each part of a stream;
///  - roles and slots: producer warps copy operands on tensor cores, and without them slots have their defaults;
///  - the grid: as many CTAs as run at once, or fewer, or one for each output tile;
///  - clusters, as why_no_cluster says;
///  - places, as legality.hpp allows: no two variables that live at the same time share memory, and all lie in the
///    arena;
///  - the order of warps, as the race checker finds it.
std::vector<BrokenRule> broken_rules(const ScheduledKernel& kernel);
/// Their messages, each with the nearest value that is allowed.
std::vector<std::string> verify(const ScheduledKernel& kernel);

}  // namespace napkin
