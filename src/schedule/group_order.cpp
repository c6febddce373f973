#include "schedule/group_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <utility>

#include "schedule/gathered.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// CTA tiles that the estimate schedules one by one, at most. With more, the last ones hardly count.
constexpr double most_in_rounds = 1 << 15;

/// Calls f for every axis on which the variable's indices depend, once for each index.
template <class F>
void for_each_axis(const Variable& variable, const F& f) {
    for (const Index& dim : variable.dims)
        if (const Affine* form = dim.affine())
            for (const auto& [axis, factor] : form->terms) f(axis);
        else
            for (const AxisId axis : dim.axes()) f(axis);
}

/// How many more values of the streams run for each value by which the CTA tile moves along the axis. A form bounds its
/// stream at one end. That end moves by the form's coefficient of the axis over its coefficient of the stream.
double growth(const ScheduledKernel& kernel, AxisId axis) {
    double values = 0;
    for (const ScheduledLoop& l : kernel.loops)
        for (const Affine& form : l.loop->support) {
            const std::int64_t along = std::max<std::int64_t>(1, std::abs(form.coefficient(l.loop->axis)));
            values += static_cast<double>(form.coefficient(axis)) / static_cast<double>(along);
        }
    return values;
}

/// A variable that a CTA tile loads.
struct Loaded {
    double bytes;               ///< of its tile
    std::vector<bool> carried;  ///< by axis: it carries the axis
};
std::vector<Loaded> loaded(const ScheduledKernel& kernel) {
    std::vector<Loaded> out;
    out.reserve(kernel.layouts.size());
    for (const Step& step : kernel.steps)
        if (const auto* load = std::get_if<Load>(step.statement)) {
            const Variable& variable = kernel.variable(load->variable);
            Loaded& next = out.emplace_back(
                Loaded{bytes_of_group(kernel, variable), std::vector<bool>(kernel.extents.size())});
            for_each_axis(variable, [&](AxisId axis) { next.carried[at(axis)] = true; });
        }
    return out;
}

/// different_tiles for a variable that carries these axes.
template <class Carries>
double share_of_different(const std::vector<GroupAxis>& order, double groups, const Carries& carries) {
    double below = 1, tiles = 1;
    for (auto g = order.rbegin(); g != order.rend(); ++g) {
        const auto n = static_cast<double>(g->tiles);
        if (carries(g->axis)) tiles *= std::min(n, std::ceil(groups / below));
        below *= n;
    }
    return std::min(1.0, tiles / std::min(groups, below));
}
double share_of_different(const std::vector<GroupAxis>& order, const Loaded& variable, double groups) {
    return share_of_different(order, groups, [&](AxisId axis) { return bool(variable.carried[at(axis)]); });
}

/// The order of clusters, with the CTA tiles of each cluster as the innermost digit. Where the rest of their axis is
/// next to it, both are one digit.
std::vector<GroupAxis> with_groups_of_clusters(const ScheduledKernel& kernel, std::vector<GroupAxis> order) {
    const AxisId axis = kernel.schedule.cluster.value.axis;
    for (GroupAxis& digit : order)
        if (digit.axis == axis) digit.stride *= kernel.cluster_blocks();
    if (!order.empty() && order.back().axis == axis && order.back().stride == kernel.cluster_blocks())
        order.back().tiles *= std::exchange(order.back().stride, 1);
    else
        order.push_back({axis, kernel.cluster_blocks()});
    return order;
}

/// Bytes that a CTA tile loads. Each operand tile counts by the part of it that differs among CTA tiles that run at the
/// same time.
double bytes_from_memory(const ScheduledKernel& kernel, const std::vector<Loaded>& loaded,
                         const std::vector<GroupAxis>& order) {
    const auto workers = static_cast<double>(kernel.schedule.threads.value);
    const auto bytes_in = [&](const std::vector<GroupAxis>& all) {
        return sum<double>(loaded, [&](const Loaded& v) { return v.bytes * share_of_different(all, v, workers); });
    };
    return kernel.in_cluster() ? bytes_in(with_groups_of_clusters(kernel, order)) : bytes_in(order);
}

/// Whether operand tiles stay in L2 until the CTA tiles one further along this digit of the order read them again. They
/// do where all of them fit, whatever passes through beside them.
bool stay_for_next(const ScheduledKernel& kernel, const std::vector<Loaded>& loaded,
                   const std::vector<GroupAxis>& order, std::size_t digit) {
    const auto inside = static_cast<double>(
        num_groups({order.begin() + static_cast<std::ptrdiff_t>(digit) + 1, order.end()}));
    double again = 0;
    for (const Loaded& v : loaded)
        if (!v.carried[at(order[digit].axis)]) again += v.bytes * share_of_different(order, v, inside) * inside;
    return again <= static_cast<double>(kernel.unit.reread_bytes);
}

/// Ascending, at most `most`.
std::vector<std::int64_t> divisors_above_one(std::int64_t n, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    std::vector<std::int64_t> small, large;
    for (std::int64_t d = 1; d * d <= n && d <= most; ++d) {
        if (n % d != 0) continue;
        if (d > 1) small.push_back(d);
        if (n / d > d && n / d <= most) large.push_back(n / d);
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    return small;
}

/// The order with uneven axes inside sections, which are bands of the other axes. Bands are as long as L2 holds what
/// the CTA tiles of a section read again, or else as short as can be.
std::vector<GroupAxis> in_sections(const ScheduledKernel& kernel, const std::vector<Loaded>& loaded,
                                   const std::vector<GroupAxis>& order) {
    const auto first_even = find_if(order, [](const GroupAxis& a) { return !a.is_uneven; });
    std::vector<GroupAxis> found = order;
    const auto all_stay = [&] {
        for (std::size_t d = 0; d < found.size(); ++d)
            if (found[d].is_uneven && !stay_for_next(kernel, loaded, found, d)) return false;
        return true;
    };
    if (first_even == order.begin() || all_stay()) return order;
    for (auto cut = first_even; cut != order.end(); ++cut) {
        std::vector<std::int64_t> widths = divisors_above_one(cut->tiles);
        if (!widths.empty()) widths.pop_back();
        widths.insert(widths.begin(), 1);
        std::reverse(widths.begin(), widths.end());
        for (const std::int64_t width : widths) {
            if (width == cut->tiles) continue;
            found.assign(first_even, cut);
            found.push_back({cut->axis, cut->tiles / width, width});
            found.insert(found.end(), order.begin(), first_even);
            if (width > 1) found.push_back({cut->axis, width});
            found.insert(found.end(), cut + 1, order.end());
            if (all_stay()) return found;
        }
    }
    return found;
}

/// The digit that may be cut into bands: the last but one among those that have several tiles. None where one of the
/// two is uneven.
std::optional<std::size_t> digit_of_bands(const std::vector<GroupAxis>& order) {
    std::vector<std::size_t> several;
    for (std::size_t i = 0; i < order.size(); ++i)
        if (order[i].tiles > 1) several.push_back(i);
    if (several.size() < 2 || order[several.back()].is_uneven || order[several[several.size() - 2]].is_uneven)
        return std::nullopt;
    return several[several.size() - 2];
}

/// The order with bands of that digit.
std::vector<GroupAxis> with_bands(const ScheduledKernel& kernel, const std::vector<Loaded>& loaded,
                                  const std::vector<GroupAxis>& order) {
    constexpr double worth_a_band = 0.99;
    const std::optional<std::size_t> outer = digit_of_bands(order);
    if (!outer) return order;
    const GroupAxis& digit = order[*outer];
    const auto in_bands = [&](std::int64_t width) {
        std::vector<GroupAxis> banded = order;
        banded[*outer].tiles = digit.tiles / width, banded[*outer].stride = width;
        banded.push_back({digit.axis, width});
        return banded;
    };
    if (const std::int64_t width = kernel.schedule.band.value; width > 0)
        return width > 1 && digit.tiles % width == 0 ? in_bands(width) : order;
    std::vector<GroupAxis> best = order;
    double least = bytes_from_memory(kernel, loaded, order);
    // CTAs that run together are all in the first of wider bands.
    for (const std::int64_t width :
         divisors_above_one(digit.tiles, std::max<std::int64_t>(2, kernel.schedule.threads.value))) {
        std::vector<GroupAxis> banded = in_bands(width);
        const double bytes = bytes_from_memory(kernel, loaded, banded);
        if (bytes < least * worth_a_band) best = std::move(banded), least = bytes;
    }
    return best;
}

}  // namespace

std::int64_t num_groups(const std::vector<GroupAxis>& order) { return product<std::int64_t>(order, &GroupAxis::tiles); }

namespace {

/// The order of clusters, or of CTA tiles where there are none.
struct OrderOfClusters {
    std::vector<GroupAxis> order;
    bool is_clustered = false;
};

/// The order by which CTAs take tiles, without bands.
OrderOfClusters without_bands(const ScheduledKernel& kernel, const std::vector<Loaded>& tiles, std::vector<GroupAxis> out) {
    const auto joined = find_if(out, [&](const GroupAxis& a) { return a.axis == kernel.schedule.cluster.value.axis; });
    const bool is_clustered = kernel.in_cluster() && joined != out.end() && joined->tiles % kernel.cluster_blocks() == 0;
    if (is_clustered) joined->tiles /= kernel.cluster_blocks();
    return {in_sections(kernel, tiles, out), is_clustered};
}

std::vector<GroupAxis> tiles_by_axis(const ScheduledKernel& kernel) {
    std::vector<GroupAxis> out;
    for (const auto& [axis, size] : groups_of(*kernel.kernel, kernel.sizes)) {
        const std::int64_t tile = kernel.span(axis, 0).tile;
        GroupAxis next{axis, (kernel.extent(axis) + tile - 1) / tile};
        const double more = growth(kernel, axis);
        if (kernel.in_blocks() && next.tiles > 1) next.is_uneven = more != 0, next.is_backward = more > 0;
        out.push_back(next);
    }
    std::stable_partition(out.begin(), out.end(), [](const GroupAxis& a) { return a.is_uneven; });
    // A CPU's tiles that read one part of a table, each where data say, come one after the other.
    if (!kernel.in_blocks())
        std::stable_partition(out.begin(), out.end(), [&](const GroupAxis& a) {
            return none_of(kernel.kernel->variables, [&](const Variable& v) { return is_of_data_alone(v, a.axis); });
        });
    return out;
}

}  // namespace

std::vector<GroupAxis> group_order(const ScheduledKernel& kernel) {
    std::vector<GroupAxis> out = tiles_by_axis(kernel);
    if (!kernel.in_blocks()) return out;
    const std::vector<Loaded> tiles = loaded(kernel);
    const auto [order, is_clustered] = without_bands(kernel, tiles, std::move(out));
    out = with_bands(kernel, tiles, order);
    return is_clustered ? with_groups_of_clusters(kernel, std::move(out)) : out;
}

std::optional<BandFault> why_no_band(const ScheduledKernel& kernel) {
    const std::int64_t width = kernel.schedule.band.value;
    if (width == 0) return std::nullopt;
    if (!kernel.in_blocks()) return BandFault{"a CPU's threads take tiles in the order of the tile program", 0};
    const auto order = without_bands(kernel, loaded(kernel), tiles_by_axis(kernel)).order;
    const auto digit = digit_of_bands(order);
    if (!digit)
        return width == 1 ? std::nullopt : std::optional(BandFault{"no two axes have several tiles of one length"});
    const GroupAxis& outer = order[*digit];
    if (outer.tiles % width == 0) return std::nullopt;
    std::int64_t nearest = 1;
    for (const std::int64_t d : divisors_above_one(outer.tiles))
        if (std::abs(d - width) < std::abs(nearest - width)) nearest = d;
    return BandFault{fmt::format("{} has {} tiles, which are no multiple of it",
                                 kernel.program->diagram.axis(outer.axis).name, outer.tiles),
                     nearest};
}

double bytes_of_group(const ScheduledKernel& kernel, const Variable& variable) {
    double values = 1;
    for_each_axis(variable, [&](AxisId axis) {
        values *= static_cast<double>(contains(kernel.kernel->group_axes, axis) ? kernel.span(axis, 0).tile
                                                                                : kernel.extent(axis));
    });
    const std::vector<Index>& indices = variable.gathers.empty() ? variable.dims : variable.gathers;
    if (any_of(indices, [](const Index& index) { return index.is_gathered(); }))
        return values * bytes(variable.memory_type);
    // Windows that overlap read a value more than once.
    const std::vector<AxisId>& axes = kernel.program->diagram.array(variable.array).axes;
    Extents count = kernel.extents;
    for (const AxisId axis : kernel.kernel->group_axes) count[axis] = kernel.span(axis, 0).tile;
    const std::vector<std::int64_t> origin(count.size(), 0);
    double different = 1;
    for (std::size_t d = 0; d < indices.size(); ++d)
        different *= static_cast<double>(std::min(range_of(indices[d], origin, count).size(), kernel.extent(axes[d])));
    return std::min(values, different) * bytes(variable.memory_type);
}

double different_tiles(const std::vector<GroupAxis>& order, const Variable& variable, double groups) {
    return share_of_different(order, groups, [&](AxisId axis) { return carries(variable, axis); });
}

double groups_between_uses(const std::vector<GroupAxis>& order, const Variable& variable) {
    double below = 1;
    for (auto g = order.rbegin(); g != order.rend() && is_of_data_alone(variable, g->axis); ++g)
        below *= static_cast<double>(g->tiles);
    if (below > 1) return below;
    for (auto g = order.rbegin(); g != order.rend(); below *= static_cast<double>(g->tiles), ++g)
        if (g->tiles > 1 && !carries(variable, g->axis)) break;
    return below;
}

double groups_together(const ScheduledKernel& kernel, const Variable& variable, double workers) {
    const std::vector<GroupAxis>& order = kernel.group_order;
    std::vector<Loaded> tiles;
    double together = 1;
    for (std::size_t d = order.size(); d-- > 0; together *= static_cast<double>(order[d].tiles)) {
        if (order[d].tiles <= 1 || carries(variable, order[d].axis)) continue;
        if (tiles.empty()) tiles = loaded(kernel);
        if (!stay_for_next(kernel, tiles, order, d)) break;
    }
    return std::max(workers, together);
}

double missed_out_of_step(const ScheduledKernel& kernel, double groups) {
    double again = 0;
    for (const Loaded& v : loaded(kernel)) {
        const double different = share_of_different(kernel.group_order, v, groups);
        if (different < 1) again += v.bytes * different * groups;
    }
    return again > 0 ? 1 - std::min(1.0, static_cast<double>(kernel.unit.reread_bytes) / again) : 0;
}

double GroupTimes::count() const {
    const double n = sum<double>(of_section, &GroupTime::count);
    return n * static_cast<double>(sections);
}
double GroupTimes::total() const {
    double time = 0;
    for (const GroupTime& g : of_section) time += g.count * g.time;
    return time * static_cast<double>(sections);
}

double time_in_rounds(const GroupTimes& groups, double workers) {
    const double n = groups.count();
    if (n > most_in_rounds) return time_as_workers_end(groups, workers);
    const auto w = static_cast<std::size_t>(workers);
    std::vector<double> times(w);
    std::size_t begin = 0, group = 0;
    for (std::int64_t s = 0; s < groups.sections; ++s, begin += std::exchange(group, 0))
        for (const GroupTime& g : groups.of_section)
            for (double i = 0; i < g.count; ++i, ++group)
                times[(begin + (group / w % 2 == 0 ? group % w : w - 1 - group % w)) % w] += g.time;
    return *max_element(times);
}

double time_as_workers_end(const GroupTimes& groups, double workers) {
    const double n = groups.count(), longest = groups.of_section.front().time, last = groups.of_section.back().time;
    if (n > most_in_rounds) {
        // When no tile is left, each of the other workers is somewhere in its last one.
        return std::max(longest, groups.total() / workers + (1 - 1 / workers) * last / 2);
    }
    // How many workers end at a time: a heap with the first of them on top.
    std::vector<std::pair<double, double>> ends{{0, workers}};
    const auto push = [&](double time, double count) {
        ends.emplace_back(time, count);
        std::push_heap(ends.begin(), ends.end(), std::greater());
    };
    const auto pop = [&] {
        std::pop_heap(ends.begin(), ends.end(), std::greater());
        const auto first = ends.back();
        ends.pop_back();
        return first;
    };
    for (std::int64_t s = 0; s < groups.sections; ++s)
        for (const GroupTime& g : groups.of_section)
            for (double left = g.count; left > 0;) {
                auto [now, free] = pop();
                while (!ends.empty() && ends.front().first == now) free += pop().second;
                if (free > left) push(now, free - left);
                push(now + g.time, std::min(free, left));
                left -= free;
            }
    return max_element(ends)->first;
}

}  // namespace napkin
