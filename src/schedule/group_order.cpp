#include "schedule/group_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace napkin {
namespace {

/// Values of the streams that run for each value of the axis that the group stands further on. A form bounds its stream at one end, and
/// so many values further as it grows by its coefficient of the stream.
double growth(const ScheduledKernel& kernel, AxisId axis) {
    double values = 0;
    for (const ScheduledLoop& l : kernel.loops)
        for (const Affine& form : l.loop->support) {
            const std::int64_t along = std::max<std::int64_t>(1, std::abs(form.coefficient(l.loop->axis)));
            values += static_cast<double>(form.coefficient(axis)) / static_cast<double>(along);
        }
    return values;
}

double num_groups(const std::vector<GroupTime>& groups) {
    double n = 0;
    for (const GroupTime& g : groups) n += g.count;
    return n;
}

}  // namespace

std::vector<GroupAxis> group_order(const ScheduledKernel& kernel) {
    std::vector<GroupAxis> out;
    for (const auto& [axis, size] : groups_of(*kernel.kernel, kernel.sizes)) {
        const std::int64_t tile = kernel.span(axis, 0).tile;
        GroupAxis next{axis, (kernel.extent(axis) + tile - 1) / tile};
        const double more = growth(kernel, axis);
        if (kernel.in_blocks() && next.tiles > 1) next.is_uneven = more != 0, next.is_backward = more > 0;
        out.push_back(next);
    }
    std::stable_partition(out.begin(), out.end(), [](const GroupAxis& a) { return a.is_uneven; });
    return out;
}

double time_in_turn(const std::vector<GroupTime>& groups, double workers) {
    // The first worker has the longest group of each turn.
    double time = 0, before = 0, next = 0;
    for (const GroupTime& g : groups) {
        before += g.count;
        const double turns = std::max(0.0, std::ceil((before - next) / workers));
        time += turns * g.time, next += turns * workers;
    }
    return time;
}

double time_as_workers_end(const std::vector<GroupTime>& groups, double workers) {
    const double n = num_groups(groups), longest = groups.front().time, last = groups.back().time;
    if (n <= workers || longest == last) return time_in_turn(groups, workers);
    double total = 0;
    for (const GroupTime& g : groups) total += g.count * g.time;
    // As there are none left, each of the other workers is somewhere in its last one.
    return std::max(longest, total / workers + (1 - 1 / workers) * last / 2);
}

}  // namespace napkin
