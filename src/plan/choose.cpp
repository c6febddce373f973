#include "plan/choose.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "plan/overrides.hpp"
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

const ScheduledKernel* PlanOptions::order_of(const std::string& kernel) const {
    if (!orders) return nullptr;
    const auto found = find_if(*orders, [&](const ScheduledKernel& k) { return k.schedule.kernel == kernel; });
    return found == orders->end() ? nullptr : &*found;
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

}  // namespace napkin
