#include "plan/plan.hpp"

#include <algorithm>

#include "support/result.hpp"

namespace napkin {

ScheduledProgram Plan::program() const {
    ScheduledProgram program;
    for (const KernelPlan& kernel : kernels) program.kernels.push_back(kernel.scheduled);
    return program;
}

SizedProgram Plan::tiles() const {
    internal_check(!kernels.empty(), "plan: it has no kernels");
    TileProgram program{kernels[0].scheduled.program->diagram, {}};
    std::vector<TileSizes> sizes;
    for (const KernelPlan& kernel : kernels) {
        program.kernels.push_back(*kernel.scheduled.kernel);
        sizes.push_back(kernel.scheduled.sizes);
    }
    return sized(std::move(program), kernels[0].scheduled.extents, std::move(sizes));
}

double Plan::seconds() const {
    return sum<double>(kernels, [&](const KernelPlan& kernel) { return kernel.time.seconds; });
}

int Plan::threads() const {
    std::int64_t most = 1;
    for (const KernelPlan& kernel : kernels) most = std::max(most, kernel.schedule().threads.value);
    return static_cast<int>(most);
}

bool Plan::is_bound() const {
    return any_of(kernels, [](const KernelPlan& kernel) { return kernel.is_bound; });
}

}  // namespace napkin
