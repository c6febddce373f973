#include "plan/choose.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "cost/compulsory.hpp"
#include "cost/footprint.hpp"
#include "cost/on_machine.hpp"
#include "plan/estimates.hpp"
#include "plan/kernel_times.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"
#include "plan/plan_form.hpp"
#include "plan/tiled.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"
#include "tile/print.hpp"
#include "tile/subloops.hpp"

namespace napkin {
namespace {

TileProgram with_named_subloops(TileProgram tiles, const std::vector<ScheduleItem>& items) {
    for (TileKernel& kernel : tiles.kernels)
        for (const ScheduleItem& item : items)
            if (item.kind == ChoiceKind::subloop && (item.kernel.empty() || item.kernel == kernel.name))
                if (const auto axis = tiles.diagram.find_axis(item.axis))
                    kernel = with_subloops_over(tiles.diagram, std::move(kernel), *axis).kernel;
    return tiles;
}

}  // namespace

std::shared_ptr<const TileProgram> KnownTiles::program(const std::vector<std::int64_t>& cut,
                                                       const std::function<TileProgram()>& make) {
    const std::lock_guard lock(mutex_);
    auto& known = programs_[cut];
    if (!known) known = std::make_shared<const TileProgram>(make());
    return known;
}

std::string KnownTiles::text(const std::vector<std::int64_t>& cut, std::size_t kernel,
                             const std::function<std::string()>& make) {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = texts_.try_emplace({cut, kernel});
    if (is_new) known->second = make();
    return known->second;
}

TileProgram tiles_of(const Derived& derived, const Extents& extents, const std::vector<ScheduleItem>& items) {
    return with_named_subloops(sized(expand(derived), extents, std::vector<TileSizes>(derived.kernels.size())), items);
}

Result<std::vector<TileKernel>> tiles_in_letters(const Derived& derived, const std::shared_ptr<const Source>& file) {
    const auto items = all_overrides(derived, {}, file);
    if (!items) return items.errors();
    return with_named_subloops(expand(derived), *items).kernels;
}

SizedProgram with_whole_axes(TileProgram program, const Extents& extents) {
    const std::vector<std::int64_t> whole(extents.size());
    SizedProgram out;
    static_cast<TileProgram&>(out) = std::move(program);
    out.extents = extents;
    out.sizes.assign(out.kernels.size(), {whole, whole, whole});
    return out;
}

std::string text_of(const SizedProgram& program, std::size_t k, const Kernel& kernel) {
    std::string text = to_string(program, k);
    for (const AxisId a : program.extents.ids())
        text += fmt::format("{} = {}\n", program.diagram.axes[a].name, program.extents[a]);
    for (const AxisId axis : kernel.recompute_axes) text += program.diagram.axis(axis).name + " repeats\n";
    return text;
}

KernelCandidate candidate_of(const ScheduledKernel& kernel) {
    const KernelSchedule& s = kernel.schedule;
    KernelCandidate out{s.kernel,
                        kernel.unit,
                        s.warps.value,
                        1,
                        s.vector_axis,
                        s.mma_m,
                        s.panel_vectors,
                        {},
                        {},
                        runs_ahead(kernel),
                        s.cluster.value.axis,
                        kernel.cluster_blocks(),
                        kernel.uses_stream_k()};
    if (const StreamParts& parts = kernel.kernel->parts; parts.any()) out.split = kernel.extent(parts.part);
    for (const auto& [axis, choice] : s.group) out.group[axis] = choice.value;
    for (const auto& [axis, choice] : s.stream) out.stream[axis] = choice.value;
    return out;
}

Result<Plan> choose_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                         const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    const bool has_blocks = machine.kind == MachineKind::gpu && options.warps.value == 0;
    return has_blocks ? choose_tiled(derived, extents, machine, by_user, options)
                      : plan_form(derived, extents, machine, by_user, options);
}

namespace {
/// On a GPU, the time comes from the closed form of each kernel.
double estimated_seconds_by_cost(const Derived& derived, const Extents& extents, const Machine& machine,
                                 KernelTimes& known, double enough) {
    const SizedProgram tiles = with_whole_axes(tiles_of(derived, extents, {}), extents);
    double seconds = 0;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        if (seconds >= enough) return seconds;
        seconds += known.seconds(text_of(tiles, k, derived.kernels[k]), [&] {
            MachineCostOptions quick;
            quick.quick = true;
            const auto cost = cost_on_machine(derived, derived.kernels[k], extents, machine, quick);
            return cost ? cost->seconds : std::numeric_limits<double>::infinity();
        });
    }
    // Arrays between kernels that the memory cannot hold make a partition worth nothing.
    const bool fits = footprint(derived, extents).bytes() <= machine.levels[0].capacity_bytes.value;
    return fits ? seconds : std::numeric_limits<double>::infinity();
}
}  // namespace

double estimated_seconds(const Derived& derived, const Extents& extents, const Machine& machine, KernelTimes& known,
                         double enough, const std::vector<ScheduleItem>& by_user) {
    if (machine.kind == MachineKind::gpu) return estimated_seconds_by_cost(derived, extents, machine, known, enough);
    PlanOptions quick{.quick = true, .completion = Completion::for_estimate, .ratings = known.ratings()};
    const std::vector<ScheduleItem> items = of_all_kernels(by_user);
    const auto hand = checked_overrides(derived, extents, items);
    if (!hand) return std::numeric_limits<double>::infinity();
    const auto parts = parts_by_user(derived, extents, items);
    if (!parts) return std::numeric_limits<double>::infinity();
    const SizedProgram tiles = with_whole_axes(tiles_of(derived, extents, items), extents);
    std::vector<std::string> texts;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) texts.push_back(text_of(tiles, k, derived.kernels[k]));
    // Known times may already reach `enough`, together with lower bounds for the kernels that are not known.
    double so_far = 0, to_come = 0;
    std::vector<double> least(texts.size());
    std::vector<std::optional<double>> times(texts.size());
    for (std::size_t k = 0; k < texts.size(); ++k) {
        times[k] = known.known(texts[k]);
        if (times[k])
            so_far += *times[k];
        else if (std::isfinite(enough))
            to_come += least[k] = least_seconds(derived, derived.kernels[k],
                                                statement_work(tiles.diagram, tiles.kernels[k]), extents, machine);
    }
    const auto find = [&](std::size_t k) {
        Derived alone = derived;
        alone.kernels = {derived.kernels[k]};
        quick.tiles = std::make_shared<const TilesToPlan>(TilesToPlan{{tiles.diagram, {tiles.kernels[k]}}, {texts[k]}});
        const auto plan = plan_whole_or_in_parts(alone, extents, machine, *hand, items, {(*parts)[k]}, quick);
        return plan ? plan->seconds() : std::numeric_limits<double>::infinity();
    };
    // Kernels that another thread is simulating come last, so that less of that work is waited for.
    for (const bool waits : {false, true})
        for (std::size_t k = 0; k < texts.size() && so_far + to_come < enough; ++k) {
            if (times[k] || (!waits && known.is_under_way(texts[k]))) continue;
            times[k] = known.seconds(texts[k], [&] { return find(k); });
            so_far += *times[k], to_come -= least[k];
        }
    if (so_far + to_come >= enough) return so_far + to_come;
    // Times are added in one order, whatever was known, so that the sum is the same.
    double seconds = 0;
    for (const std::optional<double>& time : times) seconds += *time;
    return seconds;
}

}  // namespace napkin
