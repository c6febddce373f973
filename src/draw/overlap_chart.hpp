#pragma once
// The overlap chart of a stream (paper.md §6, Figs 34 to 37): a row for every warpgroup with a lane for every unit that
// it uses, blocks as wide as their clocks, two intervals of the steady state. Hatched is what overhead there is in a
// block, and behind it the room for more that leaves the interval what it is; dashed lines are the turns that one
// warpgroup hands to the next.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "draw/shapes.hpp"
#include "steps/steps.hpp"

namespace napkin::draw {

svg::Document overlap_chart(const StreamChart& stream, const std::string& axis, const std::string& subject);

/// Microseconds of a trace that stand for a clock.
inline constexpr std::int64_t trace_units_per_clock = 1000;

/// Everything that was run as events of Chrome's trace format, which Perfetto opens: a process for every warpgroup, a
/// thread for every unit. A clock is a millisecond, so that what viewers cut off of times is less than a thousandth of
/// one.
nlohmann::ordered_json overlap_trace(const StreamChart& stream, const std::string& axis, double clock_hz);

}  // namespace napkin::draw
