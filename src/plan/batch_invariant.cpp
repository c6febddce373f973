#include "plan/batch_invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "diagram/flat_axes.hpp"
#include "lower/order_of_additions.hpp"
#include "plan/other_sizes.hpp"
#include "plan/recall.hpp"
#include "plan/simulate_again.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// Values of each axis of rows at which the order is chosen: so many that a GPU has tiles for all of its SMs.
constexpr std::int64_t rows_of_order = 1024;
/// Lengths between two powers of two that stand for all others.
constexpr std::uint64_t lengths_in_octave = 4;

std::int64_t standing_for(std::int64_t length) {
    const std::uint64_t octave = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, length)));
    const std::uint64_t step = std::max<std::uint64_t>(1, octave / (2 * lengths_in_octave));
    return round_up(length, static_cast<std::int64_t>(step));
}

std::set<AxisId> reduced_axes(const Diagram& diagram) {
    std::set<AxisId> reduced;
    for (const Equation& equation : diagram.equations)
        reduced.insert(equation.reduce_axes.begin(), equation.reduce_axes.end());
    for (const AxisId flat : diagram.axes.ids()) {
        const std::vector<AxisId> parts = parts_of_flat_axis(diagram, flat);
        if (reduced.contains(flat)) reduced.insert(parts.begin(), parts.end());
        if (any_of(parts, [&](AxisId part) { return reduced.contains(part); })) reduced.insert(flat);
    }
    return reduced;
}

Diagnostic refused(const std::string& kernel, const std::string& why, const std::string& hint) {
    return {.code = "not-batch-invariant",
            .message = fmt::format("the bits of a row of kernel {} would depend on the other rows: {}", kernel, why),
            .expected = "one order of additions for any number of rows",
            .hint = hint};
}

/// The plan that was made for other extents, with its times at these; none where a rule speaks against it.
std::optional<Plan> read_at(const Plan& made, const Derived& derived, const Extents& extents, const Machine& machine,
                            const PlanOptions& options) {
    auto read = recall(to_text({derived, made, {}}), derived, extents, machine, options.file);
    if (!read) return std::nullopt;
    auto plan = with_blocks_for(made, std::move(read->plan), machine);
    if (!plan) return std::nullopt;
    const std::vector<Simulation> times = simulate_again(derived, extents, machine, *plan, {});
    for (std::size_t k = 0; k < times.size(); ++k) plan->kernels[k].time = times[k];
    return plan;
}

}  // namespace

Diagram with_any_rows(Diagram diagram) {
    const std::set<AxisId> reduced = reduced_axes(diagram);
    for (const AxisId axis : diagram.axes.ids())
        if (!reduced.contains(axis)) diagram.axes[axis].is_any = true;
    return diagram;
}

Extents extents_of_order(const Diagram& diagram, const Extents& extents) {
    const std::set<AxisId> reduced = reduced_axes(diagram);
    std::map<std::string, std::int64_t> sizes, rows;
    for (const AxisId axis : diagram.axes.ids()) {
        const Axis& a = diagram.axis(axis);
        if (!parts_of_flat_axis(diagram, axis).empty()) continue;
        if (reduced.contains(axis))
            sizes[a.name] = a.is_any ? standing_for(extents[axis]) : extents[axis];
        else if (!a.size || a.size->as_constant())
            sizes[a.name] = extents[axis], rows[a.name] = rows_of_order;
    }
    std::map<std::string, std::int64_t> all = rows;
    all.insert(sizes.begin(), sizes.end());
    if (auto bound = bind_sizes(diagram, all)) return std::move(*bound);
    // Where sizes depend on each other, some of them stay what they are.
    Extents out = extents;
    for (const auto& [axis, length] : rows) {
        const std::int64_t before = std::exchange(sizes[axis], length);
        if (auto bound = bind_sizes(diagram, sizes))
            out = std::move(*bound);
        else
            sizes[axis] = before;
    }
    return out;
}

bool keeps_order(const PlanOptions& options, const ScheduledKernel& kernel) {
    const ScheduledKernel* order = options.order_of(kernel.schedule.kernel);
    return !order || order_without_functions(*order) == order_without_functions(kernel);
}

std::optional<Diagnostic> order_fault(const PlanOptions& options, const ScheduledKernel& kernel) {
    const std::string& name = kernel.schedule.kernel;
    if (kernel.uses_stream_k())
        return refused(name, "stream-K splits its sums by the number of tiles", "scheduler static");
    if (kernel.rescale) return refused(name, "the rows of a warp move their maximum together", "rescaling always");
    const ScheduledKernel* order = options.order_of(name);
    if (order && order_of_additions(*order) != order_of_additions(kernel))
        return refused(name, "the schedule that is fastest here adds up in another order",
                       "fix its sizes by a schedule");
    return std::nullopt;
}

Result<Plan> batch_invariant_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                                  const PlanOptions& options, const PlanAt& plan) {
    PlanOptions open = options;
    open.is_batch_invariant = true;
    open.ratings = nullptr;
    auto order = plan(extents_of_order(derived.source, extents), open);
    if (!order) return order;
    PlanOptions kept = open;
    kept.orders = std::make_shared<const std::vector<ScheduledKernel>>(
        mapped<ScheduledKernel>(order->kernels, [](const KernelPlan& kernel) { return kernel.scheduled; }));
    auto found = plan(extents, kept);
    if (found || found.errors().front().code != "not-batch-invariant") return found;
    if (auto read = read_at(*order, derived, extents, machine, options))
        if (none_of(read->kernels, [&](const KernelPlan& k) { return order_fault(kept, k.scheduled).has_value(); }))
            return std::move(*read);
    return found;
}

}  // namespace napkin
