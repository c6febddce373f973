#include "plan/axes.hpp"

#include <set>

#include "schedule/thread_runs.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// Points of the statement's loops over whole axes, a measure of its share of the work.
double points_of(const StatementWork& s, const Extents& extents) {
    std::set<AxisId> axes(s.target_axes.begin(), s.target_axes.end());
    axes.insert(s.reduce_axes.begin(), s.reduce_axes.end());
    return product<double>(axes, [&](AxisId a) { return static_cast<double>(extents[a]); });
}

/// The statements that do at least a tenth of the work.
std::vector<const StatementWork*> heavy_statements(const Simulator& model) {
    const double total = sum<double>(model.work(), [&](const StatementWork& s) { return points_of(s, model.extents()); });
    std::vector<const StatementWork*> heavy;
    for (const StatementWork& s : model.work())
        if (points_of(s, model.extents()) * 10 >= total) heavy.push_back(&s);
    return heavy;
}

}  // namespace

std::vector<VectorAxis> vector_axes(const Simulator& model) {
    const Kernel& kernel = model.kernel();
    const Diagram& diagram = model.derived().diagram;
    const std::int64_t lanes = model.lanes();
    const auto extent = [&](AxisId axis) { return model.extents()[axis]; };
    std::set<ArrayId> states;
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage))
            for (const auto& [state, value] : loop->init) states.insert(state);
    const std::vector<const StatementWork*> heavy = heavy_statements(model);
    const auto everywhere = [&](AxisId axis) {
        // A state without any grouped axis, such as a count, is one value for all lanes.
        const auto state_fits = [&](ArrayId state) {
            const std::vector<AxisId>& axes = diagram.array(state).axes;
            return contains(axes, axis) || none_of(axes, [&](AxisId a) { return contains(kernel.group_axes, a); });
        };
        return all_of(states, state_fits) && all_of(heavy, [&](const auto* s) { return contains(s->target_axes, axis); });
    };

    std::vector<VectorAxis> axes;
    for (const AxisId axis : kernel.group_axes)
        if (axis != kernel.parts.part && !contains(kernel.recompute_axes, axis) && extent(axis) >= lanes && everywhere(axis))
            axes.push_back(
                {axis, states.empty() ? "carried by all heavy statements" : "carried by every state: reductions stay vertical",
                 true});
    std::set<AxisId> ends;
    for (const StatementWork& s : model.work())
        if (!s.target_axes.empty()) ends.insert(s.target_axes.back());
    for (const CoreVariable& v : model.live().variables)
        if (v.loaded && !v.dims.empty() && v.dims.back().single_axis() >= 0) ends.insert(v.dims.back().single_axis());
    // Axes with a whole vector, or failing that with half a vector.
    const std::size_t before = axes.size();
    for (std::int64_t least = lanes; axes.size() == before && least >= std::max<std::int64_t>(2, lanes / 2);
         least -= lanes / 2)
        for (const AxisId axis : ends) {
            const bool known = any_of(axes, [&](const VectorAxis& a) { return a.axis == axis; });
            if (extent(axis) >= least && !known)
                axes.push_back({axis, "the last axis of what is computed or loaded", false});
        }
    // No reduction of a short window goes across lanes.
    const bool has_long = any_of(model.work(), [&](const StatementWork& s) {
        std::int64_t terms = 1;
        for (const AxisId axis : s.reduce_axes) terms = saturating_mul(terms, extent(axis));
        return terms > most_terms_of_run;
    });
    axes.push_back({-1, "every statement along its own last or reduced axis", !has_long});
    return axes;
}

}  // namespace napkin
