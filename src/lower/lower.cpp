#include "lower/lower.hpp"

#include "lower/lower_loops.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace {

/// Entry: the barriers in shared memory are made before any thread uses one.
Block entry(const ScheduledKernel& kernel) {
    Block out;
    if (!kernel.on_tensor_cores() || num_barriers(kernel) == 0) return out;
    out.emplace_back(InitBarriers{});
    if (kernel.syncs_cluster_before)
        out.emplace_back(ClusterBarrier{});
    else if (kernel.syncs_cta_before)
        out.emplace_back(CtaBarrier{});
    return out;
}

Role consumer(const ScheduledKernel& kernel) {
    RoleLowering lowering(kernel, false);
    Role out{0, kernel.schedule.warps.value, {}};
    if (lowering.has_ping_pong()) out.body.emplace_back(NamedBarrier{NamedBarrier::start});
    for (Statement& statement : lowering.run()) out.body.push_back(std::move(statement));
    if (any_of(kernel.schedule.places, [](const Place& place) { return place.non_temporal; }))
        out.end.emplace_back(FenceStores{});
    if (kernel.waits_for_staging) out.end.emplace_back(WaitStaging{0});
    if (kernel.syncs_cluster_after) out.end.emplace_back(ClusterBarrier{});
    return out;
}

/// The producer ends with its last copy. A barrier of the cluster waits for threads that have not ended (PTX ISA,
/// barrier.cluster), so the consumers' barrier holds all memory until then.
Role producer(const ScheduledKernel& kernel) {
    return {kernel.schedule.warps.value, kernel.producer_role()->workers, RoleLowering(kernel, true).run()};
}

}  // namespace

KernelProgram with_statements(const ScheduledKernel& kernel) {
    // Nobody owns the kernel through the program.
    KernelProgram out{.kernel = std::shared_ptr<const ScheduledKernel>(std::shared_ptr<void>(), &kernel),
                      .entry = entry(kernel),
                      .producer = {},
                      .consumer = consumer(kernel)};
    if (kernel.producer_role()) out.producer = producer(kernel);
    return out;
}

std::vector<AxisId> size_arguments(const ScheduledKernel& kernel) {
    std::vector<AxisId> out;
    for (const AxisId axis : kernel.extents.ids()) {
        const bool is_cut = any_of(kernel.scopes, [&](const Scope& scope) { return scope[axis].begins; });
        if (is_cut && kernel.schedule.any.contains(axis)) out.push_back(axis);
    }
    return out;
}

KernelProgram lowered(const std::shared_ptr<const ScheduledKernel>& kernel) {
    KernelProgram out = with_statements(*kernel);
    out.size_arguments = size_arguments(*kernel);
    out.kernel = kernel;
    out.shapes = shapes_of(*kernel);
    out.math = select_math(*kernel);
    return out;
}

LoweredProgram lowered(const ScheduledProgram& program) {
    return {mapped<KernelProgram>(program.kernels, [](const ScheduledKernel& kernel) {
        return lowered(std::make_shared<const ScheduledKernel>(kernel));
    })};
}

}  // namespace napkin::lower
