#pragma once
// What the simulator's files share.
#include <vector>

#include "schedule/simulate.hpp"

namespace napkin {

/// Values that an index takes over a tile's box, taken at the tile that begins at 0.
inline double span_of(const Index& dim, const std::vector<std::int64_t>& tile) {
    return static_cast<double>(range_of(dim, std::vector<std::int64_t>(tile.size(), 0), tile).size());
}

/// Bytes of one load or store in all, and of those the ones that no earlier transfer moved.
struct Simulator::Moved {
    std::size_t step;  ///< in which the core waits for them
    bool is_store, is_non_temporal;
    double bytes, unique;
    double by_groups = 0;  ///< of its bytes, those that no earlier transfer of the same group moved
    double together = 1;   ///< of its bytes, the part that is not read again by groups that run together
    VariableId variable = -1;
    bool is_ahead = false;  ///< it is copied while the core computes on other tiles
    double waits = 0;  ///< how often the core stands still for as long as the level answers from which they come, where all are moved
    bool stays = false;    ///< once they came into the core's memory
    double of_a_pair = 1;  ///< the same of two blocks that follow each other
    double of_a_cluster = 1;  ///< of its bytes, the part that a block asks for, where those of a cluster copy for each other
    double run = 1;           ///< bytes that lie beside each other
    double tiles = 1;         ///< in which they are moved
};

}  // namespace napkin
