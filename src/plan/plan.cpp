#include "plan/plan.hpp"

#include <algorithm>

namespace napkin {

TileSizes tile_sizes(const Derived& derived, const Kernel& kernel, const Extents& extents, const KernelPlan& plan) {
    const Diagram& diagram = derived.diagram;
    TileSizes sizes{std::vector<std::int64_t>(diagram.axes.size()), std::vector<std::int64_t>(diagram.axes.size())};
    const auto set = [&](AxisId axis, const std::map<std::string, Choice>& choices, std::vector<std::int64_t>& out) {
        const auto found = choices.find(diagram.axis(axis).name);
        if (found == choices.end()) return;
        internal_check(found->second.value >= 1, "plan: a group or stream size below 1");
        out[static_cast<std::size_t>(axis)] = std::min(found->second.value, extents[static_cast<std::size_t>(axis)]);
    };
    for (const AxisId axis : kernel.group_axes) set(axis, plan.group, sizes.group);
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) set(loop->axis, plan.stream, sizes.stream);
    return sizes;
}

ExactCosts exact_costs(const Derived& derived, const Kernel& kernel, const Extents& extents, const KernelPlan& plan) {
    return exact_costs(derived, kernel, extents, tile_sizes(derived, kernel, extents, plan));
}

}  // namespace napkin
