#pragma once
// The rules that a schedule keeps: the verifier of what was planned, or said by hand. What single choices may do is in
// legality.hpp.
#include <string>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// A field of a schedule as a file names it: "place" and "S", "role" and "copies"; "tensor" has no name.
struct ScheduleField {
    std::string kind, name;
};
struct BrokenRule {
    ScheduleField field;       ///< which breaks it, or with which others do
    std::string message;       ///< one line, naming the statement or variable
    std::string nearest = {};  ///< what the field may be instead, where the rule knows a number
};
/// All broken rules; none when the scheduled kernel is sound:
///  - atoms: loops over just the axes of their statements, vectors along an axis that is stored contiguously or
///    reduced, a block that the
///    registers hold, cuts of sums alone;
///  - runs and followers as above;
///  - a chunk for every part of a stream; no roles, and no slots but the default: a core runs statements as they stand;
///  - a grid of as many blocks as run at once, or fewer, or of one for each group;
///  - clusters as why_no_cluster says;
///  - places as above; no two variables that live at the same time share memory, and all lie in the arena.
std::vector<BrokenRule> broken_rules(const ScheduledKernel& kernel);
/// Their messages, each with what is nearest.
std::vector<std::string> verify(const ScheduledKernel& kernel);

}  // namespace napkin
