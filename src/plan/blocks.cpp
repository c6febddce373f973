#include "plan/blocks.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "machine/block_machine.hpp"

namespace napkin {
namespace {

/// Threads of a warp in CUDA.
constexpr double cuda_warp = 32;

struct BlockShape {
    int warps, blocks_a_core;
};
/// Few large tiles in many registers; small ones, so that blocks that load and blocks that compute stand beside each other.
constexpr BlockShape shapes[] = {{8, 1}, {8, 2}, {8, 4}, {4, 8}};

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
    const auto planned = [&](const BlockShape& shape, bool quick, const std::string& reason) {
        PlanOptions of_shape = options;
        of_shape.quick = quick || options.quick;
        of_shape.warps = {shape.warps, reason, false};
        return choose_plan(derived, extents, block_machine(gpu, shape.warps, shape.blocks_a_core), by_hand, of_shape);
    };
    const BlockShape* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const BlockShape& shape : shapes) {
        const auto plan = planned(shape, true, "");
        if (!plan) return plan;
        if (best == nullptr || plan->seconds() < least) best = &shape, least = plan->seconds();
    }
    return planned(*best, false,
                   fmt::format("{} block{} an SM; fastest of {} shapes", best->blocks_a_core,
                               best->blocks_a_core == 1 ? "" : "s", std::size(shapes)));
}

}  // namespace napkin
