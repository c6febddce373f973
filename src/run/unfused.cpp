#include "run/unfused.hpp"

#include "derive/derive.hpp"

namespace napkin {

Result<Unfused> unfused(Diagram diagram, const Extents& extents) {
    // What is fixed by hand is fixed of the fused kernels.
    diagram.schedule.clear();
    DeriveOptions options;
    options.fuse = false;
    auto derived = derive(diagram, options);
    if (!derived) return derived.errors();
    Unfused out{std::move(*derived), {}};
    for (std::size_t k = 0; k < out.derived.kernels.size(); ++k)
        if (const std::vector<ArrayId>& equations = out.derived.kernels[k].equations; equations.size() == 1)
            if (auto gemm = as_gemm(diagram, *diagram.definition(equations[0]), extents))
                out.multiplies.emplace(k, std::move(*gemm));
    return out;
}

}  // namespace napkin
