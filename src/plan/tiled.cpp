#include "plan/tiled.hpp"

#include <algorithm>
#include <utility>

#include "plan/copied.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"

namespace napkin {
namespace {

/// The tiled form must take less than this share of the time: its second kernel still merges the partial results.
constexpr double worth_tiling = 0.98;

/// Columns of the axis that a CTA tile of the kernel's product has. 0 where it runs on no tensor core, or as more than
/// one kernel.
std::int64_t columns_of_group(const Plan& plan, std::size_t kernel, AxisId axis) {
    std::int64_t columns = 0;
    for (const KernelPlan& k : plan.kernels) {
        if (k.whole != kernel || !k.scheduled.on_tensor_cores()) continue;
        const auto found = k.schedule().group.find(axis);
        if (columns != 0 || found == k.schedule().group.end()) return 0;
        columns = found->second.value;
    }
    return columns;
}

}  // namespace

std::optional<WithTiledReduction> with_tiled_reductions(const Derived& derived, const Extents& extents,
                                                        const std::vector<TiledReduction>& all) {
    WithTiledReduction out{derived, extents};
    for (const TiledReduction& one : all) {
        auto next = with_tiled_reduction(out.form, out.extents, one);
        if (!next) return std::nullopt;
        out = std::move(*next);
    }
    return out;
}

Result<Plan> choose_tiled(const Derived& derived, const Extents& extents, const Machine& gpu,
                          const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    auto best = choose_copied(derived, extents, gpu, by_user, options);
    if (!best || options.is_batch_invariant || !by_user.empty() || !own_schedule(derived).empty() || options.file ||
        options.quick)
        return best;
    WithTiledReduction form{derived, extents};
    std::vector<TiledReduction> taken;
    for (TiledReduction next : tiled_reductions(derived)) {
        next.tile = columns_of_group(*best, next.producer, next.axis);
        auto tiled = next.tile == 0 ? std::nullopt : with_tiled_reduction(form.form, form.extents, next);
        if (!tiled) continue;
        auto plan = choose_copied(tiled->form, tiled->extents, gpu, {}, options);
        if (!plan || plan->seconds() >= worth_tiling * best->seconds()) continue;
        taken.push_back(next), form = std::move(*tiled), best = std::move(plan);
        best->change.tiled = taken;
    }
    return best;
}

}  // namespace napkin
