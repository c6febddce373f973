#include "steps/open_sizes.hpp"

#include <algorithm>

#include "support/ids.hpp"
#include "support/saturate.hpp"

namespace napkin {

bool shrink(StepContext& context, const StepChoices& choices) {
    constexpr std::int64_t product_step = 16;
    for (const auto& [axis, share] : context.warpgroup) {
        std::int64_t& group = context.sizes.group[axis];
        if (group == 0) group = context.extents[axis];
        if (choices.group.contains(axis) || group <= share) continue;
        // Far from what fits, half of it.
        constexpr std::int64_t many = 8;
        const std::int64_t warpgroups = (group + share - 1) / share;
        group = (warpgroups > many ? warpgroups / 2 : warpgroups - 1) * share;
        return true;
    }
    for (const AxisId axis : context.extents.ids()) {
        std::int64_t& chunk = context.sizes.stream[axis];
        const auto part = choices.subloop.find(axis);
        const std::int64_t least = part == choices.subloop.end() ? 1 : part->second.value;
        if (choices.stream.contains(axis) || chunk <= least) continue;
        chunk = std::max(least, chunk >= 2 * product_step ? chunk / 2 / product_step * product_step : chunk / 2);
        return true;
    }
    for (const auto& [axis, share] : context.warpgroup) {
        if (choices.group.contains(axis) || choices.warpgroup.contains(axis) || share <= 1) continue;
        context.sizes.group[axis] = share / 2;
        return true;
    }
    return false;
}

std::optional<TileSizes> keeping_divisors(const StepContext& context, const StepChoices& choices,
                                          const SizeDivisors& divisors, Legal legal) {
    TileSizes out = context.sizes;
    bool breaks = false;
    const auto multiple_of = [&](std::int64_t size, std::int64_t unit, std::int64_t extent, bool larger) {
        breaks = true;
        const std::int64_t nearest = larger ? round_up(size, unit) : std::max(size / unit, std::int64_t{1}) * unit;
        return std::min(legal == Legal::least ? unit : nearest, extent);
    };
    for (const auto& [size, multiple] : divisors.merged()) {
        if (!is_broken(context, size, multiple)) continue;
        const std::int64_t extent = context.extents[size.axis];
        if (size.letter == 's' && !choices.stream.contains(size.axis))
            out.stream[size.axis] = multiple_of(size.size, multiple, extent, true);
        const bool is_of_group = size.letter == 'g' || (size.letter == 'w' && !choices.warpgroup.contains(size.axis));
        if (is_of_group && !choices.group.contains(size.axis)) {
            const std::int64_t group = out.group[size.axis] > 0 ? out.group[size.axis] : extent;
            out.group[size.axis] = multiple_of(group, multiple, extent, false);
        }
    }
    for (const auto& [axis, share] : context.warpgroup) {
        const std::int64_t extent = context.extents[axis];
        const std::int64_t group = out.group[axis] > 0 ? out.group[axis] : extent;
        if (!choices.group.contains(axis) && group < extent && group % share != 0 && out.group == context.sizes.group)
            out.group[axis] = multiple_of(group, share, extent, false);
    }
    if (!breaks) return std::nullopt;
    return out;
}

}  // namespace napkin
