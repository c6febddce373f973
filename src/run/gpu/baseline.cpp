#include "run/gpu/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "run/gpu/assembled_plan.hpp"
#include "run/gpu/multiply.hpp"
#include "run/unfused.hpp"
#include "support/ids.hpp"

namespace napkin::gpu {
Result<GpuBaseline> gpu_baseline(const Diagram& diagram, const Extents& extents, const Machine& machine) {
    GpuBaseline out;
    const auto form = unfused(diagram, extents);
    if (!form) return form.errors();
    out.multiplies = static_cast<int>(form->multiplies.size());
    std::string library;
    if (!form->multiplies.empty()) {
        auto found = multiply_library();
        if (!found) return found.errors();
        library = std::move(*found);
    }
    const auto accepted = assembled_plan(form->derived, extents, machine);
    if (!accepted) return accepted.errors();
    const Plan& plan = accepted->plan;
    auto kernel = GpuKernel::load(plan.tiles(), cuda::emit(plan.program()));
    if (!kernel) return kernel.errors();
    out.kernel = std::move(*kernel);
    out.extra_bytes = out.kernel->extra_bytes();

    std::shared_ptr<const DeviceMemory> workspace;
    for (const auto& [whole, gemm] : form->multiplies) {
        auto multiply = LibraryMultiply::prepare(gemm, diagram.array(gemm.a).type, diagram.array(gemm.b).type,
                                                 diagram.array(gemm.c).type);
        if (!multiply) {
            out.own.push_back(fmt::format("{} by a kernel of napkin's own: {}", diagram.array(gemm.c).name,
                                          multiply.errors().front().message));
            continue;
        }
        if (!workspace) {
            auto memory = allocate(multiply_workspace_bytes);
            if (!memory) return memory.errors();
            workspace = std::make_shared<const DeviceMemory>(std::move(*memory));
            out.extra_bytes += multiply_workspace_bytes;
        }
        out.library = library;
        // The last part stands for all of a kernel in parts.
        bool is_last = true;
        for (std::size_t k = plan.kernels.size(); k-- > 0;) {
            if (plan.kernels[k].whole != whole) continue;
            const GpuKernel& arrays = *out.kernel;
            if (is_last)
                out.kernel->replace(
                    k, [multiply = *multiply, workspace, a = arrays.address(gemm.a), b = arrays.address(gemm.b),
                        c = arrays.address(gemm.c)] { return multiply->launch(a, b, c, workspace->address()); });
            else
                out.kernel->replace(k, [] { return Status(Done{}); });
            is_last = false;
        }
    }
    return out;
}

}  // namespace napkin::gpu
