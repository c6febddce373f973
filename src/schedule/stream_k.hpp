#pragma once
// Stream-K: output tiles of a GPU's kernel are split along their stream, so that all CTAs work to the end.
//
// CTAs that take tiles of equal length run as many rounds of them as the longest. For 1376 tiles on 132 CTAs that is 11
// rounds, where an even share is 10.4. So whole tiles are scheduled statically only while a full round and more is
// left. The K blocks of the tiles that are left stand in a row, and each CTA runs an even range of it. A range is at
// least one tile long, so that no tile is split more than once. Each CTA has the end of at most one tile and the
// beginning of at most one. The end comes first: the CTA that has the beginning is busy with other tiles until then.
//
// Both parts of a tile begin with the initial states and know nothing of each other. Each warp has its own rows of the
// states, and meets the same warp of the other CTA. The warp that comes first leaves its states in memory and is done
// with the tile. The other one merges them with its own (StateMerge) and goes on to what follows the stream. Which one
// is first does not change a bit of the result, because a merge is the same in either order. Nobody waits for a CTA
// that may not have started: only the second warp waits, for a first one that is writing. So a grid of any size ends,
// and a launch leaves its memory as it found it.
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

struct StreamK {
    LoopId loop = {};         ///< over the stream
    std::int64_t blocks = 1;  ///< CTAs of the grid
    std::int64_t rounds = 0;  ///< rounds of whole tiles, one tile for each CTA
    /// tiles that are left for the rounds that are split: at least as many as CTAs, and fewer than twice as many
    std::int64_t groups = 0;
    std::int64_t chunks = 1;     ///< K blocks of a tile
    std::int64_t registers = 0;  ///< of a thread, which hold all states

    /// Where a CTA's range begins in the row of K blocks of the tiles that are left.
    [[nodiscard]] std::int64_t begin(std::int64_t block) const { return groups * chunks * block / blocks; }
    /// The most K blocks that a CTA runs, whole tiles and all.
    [[nodiscard]] std::int64_t most_k_blocks() const;
    /// Tiles that two CTAs have parts of.
    [[nodiscard]] std::int64_t num_split_tiles() const;
};

/// Stream-K for the kernel, or why its tiles cannot be split. Pre: its places are applied.
std::variant<StreamK, std::string> stream_k(const ScheduledKernel& kernel);
/// Stream-K where the kernel's schedule chooses it and its tiles can be split.
std::optional<StreamK> chosen_stream_k(const ScheduledKernel& kernel);

/// The kernel's own memory for stream-K. It begins with the words in which warps say that they have come, which are 0
/// between launches. Behind them is what the warps that came first leave, a thread's registers 32 values apart.
inline constexpr std::int64_t stream_k_alignment = 256;
std::int64_t stream_k_words_bytes(const ScheduledKernel& kernel, const StreamK& cut);
std::int64_t stream_k_bytes(const ScheduledKernel& kernel, const StreamK& cut);
/// Values that all first parts leave there. A second part reads each of them.
std::int64_t stream_k_values(const ScheduledKernel& kernel, const StreamK& cut);

}  // namespace napkin
