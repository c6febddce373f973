#include <fmt/format.h>

#include <random>

#include "check/agreement.hpp"
#include "check/probe.hpp"
#include "check/small_sizes.hpp"
#include "steps/steps.hpp"
#include "tile/interpret.hpp"
#include "tile/uses.hpp"
#include "tile/verify.hpp"

namespace napkin {
namespace {

/// Random sizes of every group, chunk and part that the kernel has.
TileSizes random_sizes(const TileKernel& kernel, const Extents& extents, std::mt19937_64& random) {
    TileSizes sizes{Extents(extents.size(), 0), Extents(extents.size(), 0), Extents(extents.size(), 0)};
    const auto any = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
    for (const AxisId axis : kernel.group_axes) sizes.group[axis] = any(extents[axis]);
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (!loop) return;
        const AxisId axis = (*loop)->axis;
        // A loop stands before the parts of its chunks.
        std::int64_t& chunk = sizes.stream[axis];
        if (!(*loop)->is_sub)
            chunk = any(extents[axis]);
        else {
            // What is cut into parts is not grouped as well.
            sizes.sub[axis] = any(chunk > 0 ? chunk : extents[axis]);
            if (chunk == 0) sizes.group[axis] = 0;
        }
    });
    return sizes;
}

}  // namespace

std::string tried_on_small_sizes(const Derived& derived, const std::vector<TileKernel>& kernels, int trials) {
    std::mt19937_64 random(1);
    for (int trial = 0; trial < trials; ++trial) {
        const auto sizes = small_sizes(derived.source, random, 1e5);
        if (!sizes) continue;
        const Extents source_extents = extents_of(derived.source, *sizes), extents = extents_of(derived.diagram, *sizes);
        const Probe probe = all_probes[static_cast<std::size_t>(trial) % std::size(all_probes)];
        const Values inputs = probe_inputs(derived.source, source_extents, probe, random());
        const Definition definition(derived.source, source_extents, inputs);
        std::vector<TileSizes> cuts;
        for (const TileKernel& kernel : kernels) cuts.push_back(random_sizes(kernel, extents, random));
        const SizedProgram program = sized({derived.diagram, kernels}, extents, cuts);
        if (const auto faults = verify(program); !faults.empty()) return faults.front();
        Values values = inputs_for(derived.diagram, derived.source, inputs);
        interpret(program, values);
        if (const auto element = definition.difference(derived.diagram, values))
            return fmt::format("{} with {} inputs", to_string(*element), name(probe));
    }
    return "";
}

}  // namespace napkin
