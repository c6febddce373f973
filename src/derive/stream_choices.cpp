#include "derive/stream_choices.hpp"

#include <set>

#include "derive/build.hpp"
#include "derive/replay.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

std::set<ArrayId> as_set(const std::vector<ArrayId>& ids) { return {ids.begin(), ids.end()}; }

bool stands_for(const Kernel& kernel, const Kernel& other) {
    return as_set(kernel.inputs) == as_set(other.inputs) && as_set(kernel.outputs) == as_set(other.outputs);
}

}  // namespace

StreamChoices::StreamChoices(const Derived& derived)
    : derived_(derived), builder_(std::make_unique<KernelBuilder>(normal_form_of(derived), derived.form)) {
    for (const Region& region : derived.regions)
        for (const Gathering& g : region.alternatives[region.chosen].kernels)
            for (const ArrayId output : builder_->outputs_of(g.targets)) targets_.emplace(output, g.targets);
}

StreamChoices::~StreamChoices() = default;

std::vector<Derived> StreamChoices::of(std::size_t index) {
    const Kernel& kernel = derived_.kernels[index];
    std::vector<Derived> out;
    const auto known = targets_.find(kernel.outputs.back());
    if (known != targets_.end() && !kernel.parts.any()) {
        std::map<AxisId, int> reductions;
        for (const ArrayId t : known->second)
            for (const AxisId axis : builder_->definition(t).reduce_axes) ++reductions[axis];
        std::vector<std::optional<AxisId>> streams;
        for (const auto& [axis, count] : reductions) streams.emplace_back(axis);
        stable_sort(streams, [&](const auto& a, const auto& b) {
            return std::pair(reductions.at(*a), *a) > std::pair(reductions.at(*b), *b);
        });
        streams.emplace_back(std::nullopt);
        for (const auto& stream : streams) {
            const auto tried = builder_->try_kernel({known->second, stream});
            if (!tried || !stands_for(kernel, tried->kernel)) continue;
            Derived& form = out.emplace_back();
            form.diagram = *tried->diagram;
            form.diagram.axes = derived_.diagram.axes;
            form.form = derived_.form;
            form.kernels = {tried->kernel};
            form.kernels.back().name = kernel.name;
        }
    }
    if (!out.empty()) return out;
    Derived& alone = out.emplace_back();
    alone.diagram = derived_.diagram;
    alone.form = derived_.form;
    alone.kernels = {kernel};
    return out;
}

}  // namespace napkin
