#pragma once
// Clusters of blocks (KernelSchedule::cluster). The blocks of a cluster run groups that lie beside each other along one
// axis, in step: an operand that does not depend on that axis is the same for all of them. Each block asks for its part
// of the tile, and one bulk copy brings the part to the same place in the memories of all (PTX ISA,
// cp.async.bulk.tensor with .multicast::cluster), so that the tile leaves the cache of all cores once. A block's
// barrier says that its own tile is there, whichever blocks its parts came from; a stage is free when the warps that
// compute have said so in every block, to every block (mapa, mbarrier.arrive.shared::cluster).
#include <optional>
#include <string>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// What a block copies of an operand's tile for all of its cluster: rows of every panel, or panels, as the block's
/// number in the cluster says.
struct ClusterPart {
    std::int64_t rows = 0, panels = 0;  ///< of one block
    bool by_rows = false;               ///< each block has so many rows of all panels; else all rows of so many panels
};
/// None where every block copies the tile for itself: it depends on the cluster's axis, or has no whole part for every
/// block.
std::optional<ClusterPart> cluster_part(const ScheduledKernel& kernel, VariableId id);

/// Why the kernel cannot run in its clusters, with what is near that it can; empty where it can.
std::string why_no_cluster(const ScheduledKernel& kernel);

/// Axes of groups along which as many blocks could share an operand: those on which some operand does not depend, and
/// that have a multiple of so many tiles.
std::vector<AxisId> axes_to_share(const ScheduledKernel& kernel, std::int64_t blocks);

}  // namespace napkin
