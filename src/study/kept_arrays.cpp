#include "study/kept_arrays.hpp"

#include <map>
#include <memory>

#include "diagram/array_sizes.hpp"
#include "support/ranges.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

Result<double> predicted(const Diagram& d, PipelineOptions options) {
    options.diagram.clear(), options.until = Pass::plan;
    auto planned = run_pipeline(std::make_shared<Source>(Source{d.name, print(canonical(d))}), options);
    if (!planned) return planned.errors();
    return planned->plan.seconds();
}

}  // namespace

Result<std::vector<KeptArrays>> choices_of_kept_arrays(const Diagram& forward, GradientOptions gradients,
                                                       PipelineOptions options, std::int64_t memory_limit) {
    const auto extents = bind_sizes(forward, options.sizes);
    if (!extents) return extents.errors();
    gradients.keep.clear();
    std::map<std::int64_t, std::vector<ArrayId>> by_bytes{{0, {}}};
    for (const Equation& e : gradient(forward, gradients).diagram.equations)
        if (at(e.target) < forward.arrays.size())
            by_bytes[array_bytes(forward, e.target, *extents)].push_back(e.target);
    gradients.only_needed = true;
    std::vector<KeptArrays> out;
    for (const auto& [bytes, arrays] : by_bytes) {
        append(gradients.keep, arrays);
        const Gradient made = gradient(forward, gradients);
        KeptArrays next{made.kept};
        for (const ArrayId id : made.kept)
            if (forward.array(id).role != ArrayRole::output) next.bytes += array_bytes(forward, id, *extents);
        if (memory_limit > 0 && next.bytes > memory_limit) break;
        if (!out.empty() && out.back().arrays == next.arrays) continue;
        const auto backward = predicted(made.diagram, options);
        if (!backward) return backward.errors();
        const auto whole = predicted(with_outputs(forward, made.kept), options);
        if (!whole) return whole.errors();
        next.forward_seconds = *whole, next.gradient_seconds = *backward;
        out.push_back(std::move(next));
    }
    return out;
}

}  // namespace napkin
