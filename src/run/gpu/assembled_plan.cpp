#include "run/gpu/assembled_plan.hpp"

#include <algorithm>
#include <thread>

#include "emit/cuda/emit.hpp"
#include "plan/estimates.hpp"
#include "run/gpu/compiler.hpp"

namespace napkin::gpu {
namespace {

std::vector<KernelRefusal> refusals_of(const Plan& plan, const Machine& machine) {
    std::vector<KernelRefusal> out(plan.kernels.size());
    if (out.empty()) return out;
    const cuda::CudaSource source = cuda::emit(plan.program());
    const auto cubin = compile_cuda(cuda::complete(source), machine.architecture);
    if (!cubin) return out;
    for (const AssemblerReport& report : cubin->kernels)
        for (std::size_t k = 0; k < source.entries.size(); ++k)
            if (source.entries[k].name == report.kernel) out[k] = {refusals(report), keeps_memory_alone(report)};
    return out;
}

}  // namespace

Result<AcceptedPlan> assembled_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                                    const PlanOptions& options, const std::function<bool(const Plan&)>& is_wanted) {
    const auto ratings = options.ratings ? options.ratings : std::make_shared<Estimates>();
    const auto plan_without = [&](const std::vector<KernelCandidate>& refused) {
        PlanOptions without = options;
        without.ratings = ratings;
        without.refused = refused;
        return choose_plan(derived, extents, machine, {}, without);
    };
    const bool asks = !machine.architecture.empty() && cuda_compiler().ok();
    // Half of the processors: what is compiled may not be needed.
    const std::size_t at_a_time = std::max(1U, std::thread::hardware_concurrency() / 2);
    return accepted_plan(
        plan_without,
        [&](const Plan& plan) {
            const bool is_shown = asks && (!is_wanted || is_wanted(plan));
            return is_shown ? refusals_of(plan, machine) : std::vector<KernelRefusal>(plan.kernels.size());
        },
        at_a_time);
}

}  // namespace napkin::gpu
