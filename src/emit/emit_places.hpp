#pragma once
// Where things are as a kernel's code runs: arrays in memory, tiles in the arena, a group's tiles along its axes, the K
// blocks of a loop.
#include <string>
#include <utility>
#include <vector>

#include "emit/emit_write.hpp"

namespace napkin::writers {

/// Declares the numbers among the launch's arguments. They stand behind the strides.
void write_numbers(const Frame& frame, Lines& out);
/// How many output tiles there are, how many in a section (ScheduledKernel::num_sections), and how many K blocks of a
/// loop.
std::string num_tiles_text(const Frame& frame);
/// A number that follows from how many output tiles and K blocks there are.
std::string whole_of_tiles(const Frame& frame, const char* what, const Expr& formula);
std::string section_text(const Frame& frame);
std::string blocks_text(const Frame& frame, const ScheduledLoop& loop);
/// The axis' size in whole tiles of that many values.
std::string padded_text(const Frame& frame, AxisId axis, std::int64_t tile);
void write_memory_pointers(const Frame& frame, Lines& out);
/// Pointers to the variables in the arena.
void write_variable_pointers(const Frame& frame, Lines& out);
/// Where the tiles of a group begin along the grouped axes, innermost first, from the digits of its number.
std::vector<std::pair<AxisId, std::string>> group_position(const Frame& frame, const std::string& group);
/// Pointers to the prefetched tiles of groups to come. Past the last group they point to that one's.
void write_tiles_ahead(const Frame& frame, Lines& out);
/// The K blocks from `from` to `to` that contribute. In these every support form reaches 0 somewhere, for the block's
/// rows or for its own warps' alone.
void write_k_block_bounds(const Frame& frame, Lines& out, const ScheduledLoop& node, const std::string& begin,
                          const std::string& from, const std::string& end, const std::string& to,
                          const OwnRows* own = nullptr);

}  // namespace napkin::writers
