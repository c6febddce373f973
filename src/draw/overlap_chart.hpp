#pragma once
// The overlap chart of a stream (paper.md §6, Figs 34 to 37): a row for every warpgroup with a lane for every unit that it uses, blocks as wide
// as their clocks, two intervals of the steady state. Hatched is what overhead there is in a block, and behind it the room for more that leaves
// the interval what it is; dashed lines are the turns that one warpgroup hands to the next.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "draw/shapes.hpp"
#include "steps/steps.hpp"

namespace napkin::draw {

svg::Document overlap_chart(const StreamChart& stream, const std::string& axis, const std::string& subject);

/// Everything that was run as events of Chrome's trace format, which Perfetto opens: a process for every warpgroup, a thread for every unit. A
/// clock is a microsecond, as times in the format have no finer unit that all viewers show.
nlohmann::ordered_json overlap_trace(const StreamChart& stream, const std::string& axis, double clock_hz);

}  // namespace napkin::draw
