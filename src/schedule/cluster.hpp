#pragma once
// Clusters of CTAs (KernelSchedule::cluster). The CTAs of a cluster run CTA tiles that lie beside each other along one
// axis, in step. An operand that does not depend on that axis is the same for all of them. Each CTA asks for its part
// of the operand tile. One bulk copy brings that part to the same place in the shared memory of every CTA (PTX ISA,
// cp.async.bulk.tensor with .multicast::cluster). So the tile is read from L2 once. A CTA's barrier says that its own
// tile has arrived, whichever CTAs its parts came from. A stage is free when the consumer warps of every CTA have
// released it to every CTA (mapa, mbarrier.arrive.shared::cluster).
#include <optional>
#include <string>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// What a CTA copies of an operand's tile for its whole cluster: rows of every panel, or whole panels. Its rank in the
/// cluster says which.
struct ClusterPart {
    std::int64_t rows = 0, panels = 0;  ///< of one CTA
    bool by_rows = false;               ///< each CTA has so many rows of all panels; else all rows of so many panels
};
/// None where every CTA copies the tile for itself. The tile then depends on the cluster's axis, or cannot be cut into
/// whole parts for every CTA.
std::optional<ClusterPart> cluster_part(const ScheduledKernel& kernel, VariableId id);

/// Why the kernel cannot run in its clusters, with the nearest choice that it can run; empty where it can.
std::string why_no_cluster(const ScheduledKernel& kernel);

/// Axes along which so many CTAs could share an operand: some operand does not depend on the axis. The number of its
/// tiles is a multiple of `blocks`, and all of them run the same K blocks.
std::vector<AxisId> axes_to_share(const ScheduledKernel& kernel, std::int64_t blocks);

}  // namespace napkin
