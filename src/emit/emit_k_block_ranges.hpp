#pragma once
// K blocks that data leave out (schedule/k_block_ranges.hpp): the pass that finds them, and what the kernel reads of
// it.
#include <string>

#include "emit/emit_write.hpp"

namespace napkin::writers {

/// Narrows the bounds of the K blocks to the range of the block's rows, or of its own warps' alone. Writes nothing
/// where the loop has no ranges.
void write_k_block_range(const Frame& frame, Lines& out, const ScheduledLoop& node, const std::string& begin,
                         const std::string& end, bool is_own);
/// Declares between which K blocks of the range that was written last data mask nothing. Pre: the loop has ranges.
/// Narrows a loop's K blocks to those that the tile's own integers leave (bounds_of_tile).
void write_bounds_of_tile(const Frame& frame, Lines& out, const ScheduledLoop& node, const std::string& begin,
                          const std::string& end);

void write_unmasked_k_blocks(const Frame& frame, Lines& out, const ScheduledLoop& node, bool is_own);
/// Whether data mask nothing of the K block. Pre: its loop has ranges.
std::string is_unmasked_k_block(const Frame& frame, ScopeId scope);
/// The statements of the kernel that finds the ranges, a block for each; empty where there are none. And that kernel,
/// with the parameters of the one that reads them.
Lines ranges_pass_body(const Frame& frame);
Lines ranges_pass(const Frame& frame, const std::string& entry, const std::string& parameters, Lines body);
/// The name of that kernel.
std::string ranges_entry(const std::string& entry);
/// As many as a block has at most: its warps wait for memory, one K block after the other.
inline constexpr int ranges_threads = 1024;

}  // namespace napkin::writers
