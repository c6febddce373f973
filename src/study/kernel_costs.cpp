#include "study/kernel_costs.hpp"

#include <algorithm>
#include <utility>

#include "plan/overrides.hpp"
#include "plan/recall.hpp"

namespace napkin {
namespace {

/// Into how many parts the stream of each kernel is cut by hand.
Result<std::vector<std::optional<Choice>>> parts_of(const Derived& derived, const Extents& extents,
                                                    const std::shared_ptr<const Source>& file) {
    const auto items = all_overrides(derived, {}, file);
    if (!items) return items.errors();
    std::vector<ScheduleItem> splits = *items;
    std::erase_if(splits, [](const ScheduleItem& item) { return item.kind != ChoiceKind::split || !item.kernel.empty(); });
    if (const auto legal = checked_overrides(derived, extents, splits); !legal) return legal.errors();
    return parts_by_user(derived, extents, *items);
}

/// And the sizes that stand beside the kernel's name.
MachineCostOptions with_sizes_of(MachineCostOptions options, const Diagram& diagram, const std::string& kernel) {
    for (const ScheduleItem& item : diagram.schedule) {
        const auto axis = diagram.find_axis(item.axis);
        if (!axis || !item.value || item.kernel != kernel) continue;
        if (item.kind == ChoiceKind::group) options.group[*axis] = *item.value;
        if (item.kind == ChoiceKind::stream) options.stream[*axis] = *item.value;
        if (item.kind == ChoiceKind::subloop) options.sub[*axis] = *item.value;
    }
    return options;
}

/// The cost of a kernel at its plan's sizes, in its plan's time.
Result<KernelOnMachine> planned_cost(const Cut& cut, std::size_t k, const Machine& machine, const KernelPlan& plan,
                                     MachineCostOptions options) {
    options.planned = true;
    const TileSizes& cuts = plan.scheduled.sizes;
    for (const AxisId axis : cut.extents.ids()) {
        // What the plan does not cut runs whole.
        const auto sized = [&](std::int64_t size) { return size > 0 ? size : cut.extents[axis]; };
        options.group[axis] = sized(cuts.group[axis]);
        options.stream[axis] = sized(cuts.stream[axis]);
        if (cuts.sub[axis] > 0) options.sub[axis] = cuts.sub[axis];
    }
    auto cost = cost_on_machine(cut.form, cut.form.kernels[k], cut.extents, machine, options);
    if (!cost) return cost;
    const Simulation& time = plan.time;
    cost->ceilings.clear();
    for (const Busy& busy : time.busy) cost->ceilings.push_back({busy.what, busy.seconds, {}});
    cost->seconds = time.seconds, cost->bound_by = time.bound_by();
    cost->margin = time.busy.size() > 1 ? time.busy[0].seconds / time.busy[1].seconds : 1;
    // What a core waits for stands in the times of its units.
    cost->latency_s = 0, cost->launch_s = time.launch_seconds;
    return cost;
}

}  // namespace

Result<KernelCosts> planned_costs(const Derived& derived, const Extents& extents, const Machine& machine, const Plan& plan,
                                  const MachineCostOptions& by_user, const std::shared_ptr<const Source>& file) {
    auto cut = changed_form(derived, extents, machine, plan.change);
    internal_check(cut.has_value(), "cost: a plan is of another form");
    KernelCosts out{std::move(*cut), {}, {}};
    auto tiles = tiles_in_letters(out.cut.form, file);
    if (!tiles) return tiles.errors();
    out.tiles = std::move(tiles).value();
    MachineCostOptions options = by_user;
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
        options.tiles = &out.tiles[k];
        auto cost = planned_cost(out.cut, k, machine, plan.kernels[k], options);
        if (!cost) return cost.errors();
        out.kernels.push_back(std::move(cost).value());
    }
    return out;
}

MachineCostOptions costs_by_hand(const Diagram& diagram) { return with_sizes_of({}, diagram, ""); }

double values_a_core(const Diagram& diagram, const Machine& machine) {
    int widest = 1;
    for (const Array& array : diagram.arrays)
        if (array.role != ArrayRole::temporary) widest = std::max(widest, bytes(array.type));
    return bytes_a_core(machine, core_memory_level(machine)) / widest;
}

Result<KernelCosts> closed_form_costs(const Derived& derived, const Extents& extents, const Machine& machine,
                                      const MachineCostOptions& by_user, const std::shared_ptr<const Source>& file) {
    auto parts = parts_of(derived, extents, file);
    if (!parts) return parts.errors();
    const auto costed = [&](const Derived& form, const Extents& sizes, const std::vector<TileKernel>& tiles,
                            std::size_t k, bool whole) {
        MachineCostOptions options = with_sizes_of(by_user, form.diagram, form.kernels[k].name);
        options.tiles = &tiles[k];
        options.whole = whole;
        return cost_on_machine(form, form.kernels[k], sizes, machine, options);
    };
    const auto whole_tiles = tiles_in_letters(derived, file);
    if (!whole_tiles) return whole_tiles.errors();
    std::vector<KernelOnMachine> whole_kernels;
    std::vector<std::int64_t> numbers;
    const auto cost_whole = [&](std::size_t k) {
        return costed(derived, extents, *whole_tiles, k, (*parts)[k].has_value());
    };
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        auto cost = cost_whole(k);
        if (!cost) return cost.errors();
        numbers.push_back((*parts)[k] ? (*parts)[k]->value : static_cast<std::int64_t>(cost->splits));
        whole_kernels.push_back(std::move(cost).value());
    }
    while (true) {
        KernelCosts out{{}, *whole_tiles, whole_kernels};
        out.cut = cut_streams(derived, extents, numbers);
        if (out.cut.form.kernels.size() == out.kernels.size()) return out;
        auto tiles = tiles_in_letters(out.cut.form, file);
        if (!tiles) return tiles.errors();
        out.tiles = std::move(tiles).value();
        out.kernels.clear();
        std::optional<std::size_t> uncut;
        for (std::size_t k = 0; k < out.tiles.size() && !uncut; ++k) {
            const std::size_t whole = out.cut.whole[k];
            if (std::count(out.cut.whole.begin(), out.cut.whole.end(), whole) == 1) {
                out.kernels.push_back(whole_kernels[whole]);
                continue;
            }
            auto cost = costed(out.cut.form, out.cut.extents, out.tiles, k, true);
            // Sizes by hand are of the kernel as it is: where its parts or their merge do not fit with them, nothing is
            // cut that was not to be.
            if (!cost && !(*parts)[whole]) uncut = whole;
            if (!cost && !uncut) return cost.errors();
            if (cost) out.kernels.push_back(std::move(cost).value());
        }
        if (!uncut) return out;
        (*parts)[*uncut] = Choice{1, "", false};
        numbers[*uncut] = 1;
        auto cost = cost_whole(*uncut);
        if (!cost) return cost.errors();
        whole_kernels[*uncut] = std::move(cost).value();
    }
}

TileSizes tiles_of(const KernelOnMachine& cost, const Extents& extents) {
    TileSizes tiles{std::vector<std::int64_t>(extents.size(), 0), std::vector<std::int64_t>(extents.size(), 0)};
    for (const auto& [axis, size] : cost.group) tiles.group[axis] = size;
    for (const auto& [axis, size] : cost.stream) tiles.stream[axis] = size;
    tiles.sub.resize(extents.size());
    for (const auto& [axis, size] : cost.sub) tiles.sub[axis] = size;
    return tiles;
}

}  // namespace napkin
