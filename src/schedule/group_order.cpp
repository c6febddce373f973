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

/// Bytes that a group loads of all tiles, each counted as the part of it that is different among groups that run at the same time.
double bytes_from_memory(const ScheduledKernel& kernel, const std::vector<GroupAxis>& order) {
    const auto workers = static_cast<double>(kernel.schedule.threads.value);
    double total = 0;
    for (const Step& step : kernel.steps) {
        const auto* load = std::get_if<Load>(step.statement);
        if (!load) continue;
        const Variable& variable = kernel.variable(load->variable);
        double loaded = bytes(variable.memory_type);
        for (const Index& dim : variable.dims)
            for (const AxisId axis : dim.axes()) {
                const bool is_grouped = std::any_of(order.begin(), order.end(),
                                                    [&](const GroupAxis& a) { return a.axis == axis; });
                loaded *= static_cast<double>(is_grouped ? kernel.span(axis, 0).tile : kernel.extent(axis));
            }
        total += loaded * different_tiles(order, variable, workers);
    }
    return total;
}

/// The order with bands of the last axis but one, of those that have several tiles.
std::vector<GroupAxis> with_bands(const ScheduledKernel& kernel, const std::vector<GroupAxis>& order) {
    constexpr double worth_a_band = 0.99;
    std::vector<std::size_t> several;
    for (std::size_t i = 0; i < order.size(); ++i)
        if (order[i].tiles > 1) several.push_back(i);
    if (several.size() < 2 || order[several.back()].is_uneven || order[several[several.size() - 2]].is_uneven)
        return order;
    const std::size_t outer = several[several.size() - 2];
    std::vector<GroupAxis> best = order;
    double least = bytes_from_memory(kernel, order);
    for (std::int64_t width = 2; width <= order[outer].tiles; ++width) {
        if (order[outer].tiles % width != 0) continue;
        std::vector<GroupAxis> banded = order;
        banded[outer].tiles /= width, banded[outer].stride = width;
        banded.push_back({order[outer].axis, width});
        const double bytes = bytes_from_memory(kernel, banded);
        if (bytes < least * worth_a_band) best = std::move(banded), least = bytes;
    }
    return best;
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
    return kernel.in_blocks() ? with_bands(kernel, out) : out;
}

double different_tiles(const std::vector<GroupAxis>& order, const Variable& variable, double workers) {
    double below = 1, tiles = 1;
    for (auto g = order.rbegin(); g != order.rend(); ++g) {
        const auto n = static_cast<double>(g->tiles);
        if (carries(variable, g->axis)) tiles *= std::min(n, std::ceil(workers / below));
        below *= n;
    }
    return std::min(1.0, tiles / std::min(workers, below));
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
