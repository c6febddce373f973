#include "plan/cluster.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "plan/grid.hpp"
#include "plan/reasons.hpp"
#include "schedule/cluster.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// Blocks of the clusters that are tried: the pace of more is not measured (CrossTransfer::pace).
constexpr std::int64_t tried = 2;
/// They must be so much faster: their pace differs by two hundredths from product to product (docs/cost.md, clusters).
constexpr double worth_joining = 0.98;

}  // namespace

int choose_cluster(KernelSchedule& schedule, const CandidateSchedules& schedules, const Simulator& model,
                   const PlanOptions& options, std::int64_t walk_limit) {
    const CopyAtoms& copies = schedules.unit().copies;
    if (schedule.cluster.by_hand || schedule.tensor_axis < 0 || schedule.roles.empty() || !(copies.cluster_pace > 0) ||
        !contains(copies.clusters, tried))
        return 0;
    ScheduledKernel alone = schedules.completed(schedule, Completion::for_rating);
    const std::vector<AxisId> axes = alone.copying_role() ? axes_to_share(alone, tried) : std::vector<AxisId>{};
    if (axes.empty()) return 0;
    int simulated = 1;
    const double seconds = choose_grid(alone, model, schedules.threads(), walk_limit).seconds;
    double least = worth_joining * seconds;
    for (const AxisId axis : axes) {
        KernelSchedule joined = schedule;
        joined.cluster_axis = axis, joined.cluster = {tried, "", false};
        ScheduledKernel kernel = schedules.completed(joined, Completion::for_rating);
        if (!why_no_cluster(kernel).empty() || contains(options.refused, candidate_of(kernel))) continue;
        ++simulated;
        const double time = choose_grid(kernel, model, schedules.threads(), walk_limit).seconds;
        if (time >= least) continue;
        least = time;
        std::vector<std::string> shared;
        for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
            if (const auto id = VariableId::of(v); cluster_part(kernel, id)) shared.push_back(kernel.variable(id).name);
        joined.cluster.reason = fmt::format("{} once for {} blocks; each by itself is {}", join(shared, ", "), tried,
                                            time_change(seconds / time));
        schedule.cluster_axis = axis, schedule.cluster = std::move(joined.cluster);
    }
    return simulated;
}

}  // namespace napkin
