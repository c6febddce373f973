#include "plan/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "machine/block_machine.hpp"
#include "plan/by_hand.hpp"

namespace napkin {
namespace {

/// Threads of a warp in CUDA.
constexpr double cuda_warp = 32;

struct BlockShape {
    int warps, blocks_a_core;
};
/// Few large tiles in many registers; small ones, so that blocks that load and blocks that compute stand beside each other.
constexpr BlockShape shapes[] = {{8, 1}, {8, 2}, {8, 4}, {4, 8}};

/// The last that says so: the file, the choices beside the text, the text. Kernels of one program have blocks of one shape.
Result<std::optional<std::int64_t>> warps_by_hand(const Derived& derived, const Extents& extents,
                                                  const std::vector<ScheduleItem>& by_hand, const PlanOptions& options) {
    auto said = all_by_hand(derived, by_hand, options.file);
    if (!said) return said.errors();
    std::vector<ScheduleItem> items = std::move(said).value();
    std::erase_if(items, [](const ScheduleItem& item) { return item.kind != "warps"; });
    const auto checked = hand_choices(derived, extents, items);
    if (!checked) return checked.errors();
    std::optional<std::int64_t> warps;
    if (checked->warps) warps = *checked->warps->value;
    return warps;
}

}  // namespace

Result<Plan> choose_blocks(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_hand, const PlanOptions& options) {
    if (!gpu.threads || gpu.threads->warp_threads.value != cuda_warp) {
        Diagnostic d;
        d.code = "no-emitter";
        d.message = fmt::format(
            "kernels are planned and emitted for CPUs and for GPUs that CUDA programs, and {} is neither", gpu.name);
        d.expected = "a machine of kind cpu, or a GPU with warps of 32 threads";
        d.hint = fmt::format("'napkin cost --machine {}' says what it costs there", gpu.name);
        d.exit_code = ExitCode::machine_lacks;
        return d;
    }
    const auto wanted = warps_by_hand(derived, extents, by_hand, options);
    if (!wanted) return wanted.errors();
    const auto planned = [&](const BlockShape& shape, bool quick, const std::string& reason) {
        PlanOptions of_shape = options;
        of_shape.quick = quick || options.quick;
        of_shape.warps = {shape.warps, reason, wanted->has_value()};
        return choose_plan(derived, extents, block_machine(gpu, shape.warps, shape.blocks_a_core), by_hand, of_shape);
    };
    const auto most = static_cast<int>(gpu.threads->warps_a_core.value);
    std::optional<BlockShape> best;
    std::optional<Result<Plan>> refused;
    double least = std::numeric_limits<double>::infinity();
    for (BlockShape shape : shapes) {
        if (*wanted) {
            const auto warps = static_cast<int>(**wanted);
            shape = {warps, std::min(shape.blocks_a_core, most / warps)};
        }
        const auto plan = planned(shape, true, "");
        // Sizes by hand may fit where fewer blocks share an SM.
        if (!plan) refused = refused ? refused : plan;
        if (plan && (!best || plan->seconds() < least)) best = shape, least = plan->seconds();
    }
    if (!best) return *refused;
    return planned(*best, false,
                   fmt::format("{} block{} an SM; fastest of {} shapes", best->blocks_a_core,
                               best->blocks_a_core == 1 ? "" : "s", std::size(shapes)));
}

}  // namespace napkin
