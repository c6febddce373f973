#pragma once
// Groups of a GPU's kernel that are cut along their stream, so that all blocks work to the end.
//
// Blocks that take groups of equal length in turn run as many rounds of them as the longest: of 1376 groups on 132
// blocks 11, where an even share is 10.4. So whole groups are dealt out only as long as a full round and more is left.
// The chunks of the groups that are left stand in a row, and each block runs an even stretch of it: one group's at
// least, so that no group is cut more than once, and each block has the end of at most one group and the beginning of
// at most one. The end comes first: the block that has the beginning is busy with others until then.
//
// Both parts of a group begin with the first states and know nothing of each other. Every warp has its own rows of
// them, and meets the same warp of the other block: the one that comes first leaves its states in memory and is done
// with the group, the other one merges them with its own (StateMerge) and goes on to what follows the stream. Who is
// the first does not matter, to the last bit: a merge is the same whichever of its parts comes first. Nobody waits for
// a block that may not have started, since only the second warp waits, for a first one that is writing; so a grid of
// any size ends, and a launch leaves its memory as it found it.
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

struct StreamK {
    LoopId loop = {};         ///< over the stream
    std::int64_t blocks = 1;  ///< of the grid
    std::int64_t rounds = 0;  ///< of whole groups, one for each block
    /// that are left for the rounds that are cut: as many as blocks at least, and fewer than twice as many
    std::int64_t groups = 0;
    std::int64_t chunks = 1;     ///< of a group
    std::int64_t registers = 0;  ///< of a thread, that hold all states

    /// Where a block's stretch begins among the chunks of the groups that are left, in a row.
    [[nodiscard]] std::int64_t begin(std::int64_t block) const { return groups * chunks * block / blocks; }
    /// The most chunks that a block runs, whole groups and all.
    [[nodiscard]] std::int64_t most_k_blocks() const;
    /// Groups that two blocks have parts of.
    [[nodiscard]] std::int64_t num_split_tiles() const;
};

/// They, or why no groups of the kernel may be cut. Pre: its places are applied.
std::variant<StreamK, std::string> stream_k(const ScheduledKernel& kernel);
/// The kernel's schedule has its groups cut, where they may be.
std::optional<StreamK> chosen_stream_k(const ScheduledKernel& kernel);

/// Memory of the kernel's own, where groups are cut: words in which warps say that they have come, which are 0 between
/// launches, and behind them what those that came first leave, a thread's registers 32 values apart.
inline constexpr std::int64_t stream_k_alignment = 256;
std::int64_t stream_k_words_bytes(const ScheduledKernel& kernel, const StreamK& cut);
std::int64_t stream_k_bytes(const ScheduledKernel& kernel, const StreamK& cut);
/// Values that all first parts leave there, each of which a second one reads.
std::int64_t stream_k_values(const ScheduledKernel& kernel, const StreamK& cut);

}  // namespace napkin
