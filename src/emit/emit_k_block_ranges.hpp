#pragma once
// Chunks that data leave out (schedule/k_block_ranges.hpp): the pass that finds them, and what the kernel reads of it.
#include <string>

#include "emit/emit_write.hpp"

namespace napkin::writers {

/// Draws the chunks' ends in to the range of the block's rows, or of its own warps' alone. Nothing where the loop has
/// no ranges.
void write_k_block_range(const Frame& frame, Lines& out, const ScheduledLoop& node, const std::string& begin,
                         const std::string& end, bool is_own);
/// Between which chunks data mask nothing, of the range that was written last. Pre: the loop has ranges.
void write_unmasked_k_blocks(const Frame& frame, Lines& out, const ScheduledLoop& node, bool is_own);
/// Whether data mask nothing of the chunk. Pre: its loop has ranges.
std::string is_unmasked_k_block(const Frame& frame, ScopeId scope);
/// The kernel that finds the ranges, a block for each, with the parameters of the one that reads them; "": there are
/// none.
std::string ranges_pass(const Frame& frame, const std::string& entry, const std::string& parameters);
/// The name of that kernel.
std::string ranges_entry(const std::string& entry);
/// As many as a block has at most: what its warps wait for is memory, a chunk after the other.
inline constexpr int ranges_threads = 1024;

}  // namespace napkin::writers
