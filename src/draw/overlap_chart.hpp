#pragma once
// The overlap chart of a stream (paper.md §6, Figs 34 to 37). It has a row for every warpgroup with a lane for every
// unit that it uses. Blocks are as wide as their clocks, over two intervals of the steady state. The overhead in a
// block is hatched. Behind the block stands the room for more overhead that would not lengthen the interval. Thick
// dotted lines are barriers, where one warpgroup hands the tensor cores to the next (ping-pong).
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
