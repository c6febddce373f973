#include "plan/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "machine/block_machine.hpp"
#include "plan/by_hand.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Threads of a warp in CUDA.
constexpr double cuda_warp = 32;

struct BlockShape {
    int warps, blocks_a_core;
    friend bool operator==(const BlockShape&, const BlockShape&) = default;
};
/// Few large tiles in many registers; small ones, so that blocks that load and blocks that compute stand beside each other.
constexpr BlockShape ordinary_shapes[] = {{8, 1}, {8, 2}, {8, 4}, {4, 8}};

/// Those to try, each once. With as many warps as `by_hand` says, an SM that holds `most` of them has room for fewer blocks.
std::vector<BlockShape> shapes_to_try(const std::optional<std::int64_t>& by_hand, std::int64_t most) {
    std::vector<BlockShape> out;
    for (BlockShape shape : ordinary_shapes) {
        if (by_hand) {
            const auto warps = static_cast<int>(*by_hand);
            shape = {warps, std::min(shape.blocks_a_core, static_cast<int>(most) / warps)};
        }
        if (!contains(out, shape)) out.push_back(shape);
    }
    return out;
}

std::string reason_of(const BlockShape& shape, std::size_t num_shapes) {
    const std::string blocks = fmt::format("{} block{} an SM", shape.blocks_a_core, shape.blocks_a_core == 1 ? "" : "s");
    return num_shapes == 1 ? fmt::format("{}; no more of {} warps fit", blocks, shape.warps)
                           : fmt::format("{}; fastest of {} shapes", blocks, num_shapes);
}

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

/// Kernels of the derived form that are refused and have no other candidate in blocks of this shape.
std::size_t refused_kernels(const Plan& plan, const PlanOptions& options) {
    std::set<std::size_t> out;
    for (const KernelPlan& kernel : plan.kernels)
        if (contains(options.refused, candidate_of(kernel.scheduled))) out.insert(kernel.whole);
    return out.size();
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
    const auto shapes = shapes_to_try(*wanted, static_cast<std::int64_t>(gpu.threads->warps_a_core.value));
    std::optional<BlockShape> best;
    std::optional<Result<Plan>> refused;
    // Kernels that are refused, then seconds.
    std::pair<std::size_t, double> least;
    for (const BlockShape& shape : shapes) {
        const auto plan = planned(shape, true, "");
        // Sizes by hand may fit where fewer blocks share an SM.
        if (!plan) refused = refused ? refused : plan;
        if (!plan) continue;
        const std::pair rating{refused_kernels(*plan, options), plan->seconds()};
        if (!best || rating < least) best = shape, least = rating;
    }
    if (!best) return *refused;
    return planned(*best, false, reason_of(*best, shapes.size()));
}

}  // namespace napkin
