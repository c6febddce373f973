#pragma once
// What the race checker runs: the events of each warp, in their order (traces.cpp).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lower/race_checker.hpp"
#include "schedule/accesses.hpp"
#include "schedule/scheduled.hpp"

namespace napkin {

/// In a CTA two consumer warps, and one producer warp where there is a producer role. In a cluster those of two CTAs.
constexpr std::size_t num_computing = 2, copying = num_computing, block_warps = num_computing + 1, most_blocks = 2,
                      num_warps = most_blocks * block_warps;
constexpr std::size_t block_of(std::size_t warp) { return warp / block_warps; }
/// The first consumer warp of a warp's CTA; the others follow it.
constexpr std::size_t first_of_block(std::size_t warp) { return block_of(warp) * block_warps; }
/// How many steps of each warp are known to be done.
using Clock = std::array<int, num_warps>;

inline void take_in(Clock& a, const Clock& b) {
    for (std::size_t w = 0; w < num_warps; ++w) a[w] = std::max(a[w], b[w]);
}

/// What a warp does that others have to know.
struct Event {
    enum Kind : std::uint8_t {
        meet,   ///< waits at the barrier of all consumer warps
        fill,   ///< asks for the copy of an iteration's tile, or for its own part of it
        await,  ///< waits until that copy has arrived
        read,
        begin,            ///< issues a product, which reads and computes beside the warp
        factor,           ///< that product reads the tile
        settle,           ///< waits until at most so many products are in flight
        touch,            ///< reads or writes registers of the variable
        free,             ///< releases the tile
        await_staging,    ///< waits until at most so many of its staging tiles are being read
        write_staging,    ///< writes the staging tile of this number
        publish,          ///< proxy fence: bulk copies and products see what it has written to shared memory
        send,             ///< asks for the copy of the staging tile to global memory
        refill,           ///< producer acquire: waits until all warps have released the tile that is copied over
        access,           ///< accesses what its step shares with other warps
        init_barriers,    ///< makes the barriers of its CTA
        cta_barrier,      ///< waits for all warps of the CTA
        cluster_barrier,  ///< waits for all warps of the cluster that have not ended
        leave,            ///< ends, and its CTA's memory ends with the last consumer warp
        wait_ping_pong,   ///< ping-pong: waits until another warp has passed it the tensor cores
        pass_ping_pong,   ///< passes them to the warp of this number
        write_number,     ///< the tile queue: writes the number of a tile into its stage
        signal_number,    ///< tells the consumers that it is there
        await_number,     ///< waits until it is
        read_number,      ///< reads it
        free_number,      ///< tells the producer that it has read it
        refill_number,    ///< waits until all consumers have read the number that is written over
        write_states,     ///< stream-K: leaves its states of a split tile in global memory
        signal_states,    ///< tells the other CTA's warp that they are there
        await_states,     ///< waits until they are
        read_states,      ///< reads them
    };
    Kind kind = meet;
    VariableId operand = -1;
    /// For an access: its number among those of its warp. Accesses of the same number do not conflict.
    std::int64_t turn = 0;
    StepId step = {};        ///< of an access, or of a product that begins
    bool is_second = false;  ///< of an access: it follows the barrier inside the step
};
using Trace = std::vector<Event>;

/// Runs the traces beside each other and returns the first fault. Trace w is that of warp w: the consumer warps of a
/// CTA, its producer warp where it has one, then those of a second CTA.
std::optional<Fault> first_fault(const ScheduledKernel& kernel, const Accesses& touches, std::vector<Trace> traces);

}  // namespace napkin
