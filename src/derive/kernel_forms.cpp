#include "derive/kernel_forms.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>

#include "derive/array_types.hpp"
#include "derive/build.hpp"
#include "derive/flat_stream.hpp"
#include "derive/gather.hpp"
#include "derive/replay.hpp"
#include "derive/weigh.hpp"
#include "diagram/flat_axes.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// How the kernels follow from their equations: fused, then streamed, then cut into groups.
void record_kernels(Derived& derived, const std::vector<Gathering>& gatherings) {
    const Diagram& d = derived.diagram;
    for (std::size_t i = 0; i < gatherings.size(); ++i) {
        const Kernel& k = derived.kernels[i];
        const Gathering& g = gatherings[i];
        const SourceRange& range = d.definition(g.targets.back())->range;
        if (k.equations.size() > 1)
            derived.steps.push_back(
                {"fuse", "split", "Theorem 1: no array between these equations is read at other indices than its own",
                 fmt::format("{} are one kernel", join(names_of(d.arrays, g.targets), ", ")), range, Fuse{i}});
        if (g.stream && !k.folds.empty()) {
            std::vector<ArrayId> states;
            for (const auto& f : k.folds)
                for (const auto& s : f.states) states.push_back(s.state);
            const std::string& axis = d.axis(*g.stream).name;
            derived.steps.push_back({"stream partition", "whole axis",
                                     "every state has an accumulator: carry ⊕ the chunk's own reduction",
                                     fmt::format("{} arrives in chunks of s_{}; kept between chunks: {}", axis, axis,
                                                 join(names_of(d.arrays, states), ", ")),
                                     range, StreamPartition{i, *g.stream}});
        }
        for (const AxisId a : k.group_axes)
            if (!contains(k.recompute_axes, a))
                derived.steps.push_back({"group partition", "whole axis",
                                         fmt::format("{} is woven over every result", d.axis(a).name),
                                         fmt::format("{} is cut into tiles of g_{}", d.axis(a).name, d.axis(a).name),
                                         range, GroupPartition{i, a}});
    }
}

std::vector<Gathering> chosen_gatherings(const std::vector<Region>& regions) {
    std::vector<Gathering> out;
    for (const Region& r : regions) {
        const auto& kernels = r.alternatives[r.chosen].kernels;
        append(out, kernels);
    }
    return out;
}

/// The kernels of these gatherings, and the record from the source to them.
void build(Derived& derived, KernelBuilder& builder, const std::vector<Gathering>& gatherings) {
    derived.steps = derived.normal_steps;
    derived.refusals = derived.normal_refusals;
    derived.kernels = builder.rewrite(gatherings, derived.steps, derived.refusals);
    derived.diagram = builder.diagram();
    record_kernels(derived, gatherings);
    give_integer_types(derived);
}

Alternative alternative(KernelBuilder& builder, const std::vector<Gathering>& kernels, std::string condition) {
    Weight weight;
    for (const Gathering& g : kernels) weight += weigh(*builder.try_kernel(g));
    return {kernels, as_size(weight.flops), as_size(weight.transfers), std::move(condition)};
}

}  // namespace

void build_kernels(Derived& derived, KernelBuilder& builder) {
    build(derived, builder, chosen_gatherings(derived.regions));
}

Derived rederive(const Derived& derived, const std::vector<std::size_t>& chosen) {
    internal_check(chosen.size() == derived.regions.size(), "one choice for each region");
    Derived out;
    out.source = derived.source;
    out.form = derived.form;
    out.rewriting = derived.rewriting;
    out.keeps_streams = derived.keeps_streams, out.keeps_kernels = derived.keeps_kernels;
    out.regions = derived.regions;
    out.normal_steps = derived.normal_steps;
    out.normal_refusals = derived.normal_refusals;
    for (std::size_t i = 0; i < chosen.size(); ++i) out.regions[i].chosen = chosen[i];
    KernelBuilder builder(normal_form_of(derived), derived.form);
    build_kernels(out, builder);
    return out;
}

KernelForms::KernelForms(const Derived& derived) : derived_(derived), normal_(normal_form_of(derived)) {}

Derived KernelForms::of(const std::vector<Gathering>& kernels) const {
    Derived alone;
    alone.source = derived_.source;
    alone.form = derived_.form;
    alone.rewriting = derived_.rewriting;
    KernelBuilder builder(normal_, derived_.form);
    build(alone, builder, kernels);
    return alone;
}

std::vector<Gathering> KernelForms::streamed(const Gathering& gathering) const {
    std::vector<Gathering> out{gathering};
    if (derived_.keeps_streams) return out;
    KernelBuilder builder(normal_, derived_.form);
    const auto equations = mapped<Equation>(gathering.targets, [&](ArrayId t) { return builder.definition(t); });
    std::vector<std::optional<AxisId>> streams;
    for (const Equation& e : equations) append(streams, e.reduce_axes);
    append(streams, flat_axes_of(normal_, equations));
    if (!streams.empty()) streams.emplace_back(std::nullopt);
    for (const std::optional<AxisId>& stream : streams)
        if (const Gathering next{gathering.targets, stream}; !contains(out, next) && builder.try_kernel(next))
            out.push_back(next);
    return out;
}

std::vector<std::vector<Region>> gatherings_of(const Derived& derived) {
    std::vector<std::vector<Region>> out{derived.regions};
    if (derived.keeps_streams || derived.keeps_kernels) return out;
    const Diagram normal = normal_form_of(derived);
    const auto add = [&](GatherOptions options) {
        KernelBuilder builder(normal, derived.form);
        std::vector<Refusal> refusals;
        if (auto regions = gather(builder, options, refusals); !contains(out, regions))
            out.push_back(std::move(regions));
    };
    std::set<AxisId> reduced;
    for (const Equation& e : normal.equations) reduced.insert(e.reduce_axes.begin(), e.reduce_axes.end());
    for (const AxisId axis : reduced) add({.stream = {axis}});
    add({.fuse = false});
    return out;
}

Derived with_kernels(const Derived& derived, const std::vector<std::vector<Gathering>>& kernels) {
    internal_check(kernels.size() == derived.regions.size(), "kernels for each region");
    Derived with = derived;
    const Diagram normal = normal_form_of(derived);
    std::vector<std::size_t> chosen;
    for (std::size_t r = 0; r < kernels.size(); ++r) {
        std::vector<Alternative>& known = with.regions[r].alternatives;
        const auto same = find_if(known, [&](const Alternative& a) { return a.kernels == kernels[r]; });
        chosen.push_back(static_cast<std::size_t>(same - known.begin()));
        if (same != known.end()) continue;
        KernelBuilder builder(normal, derived.form);
        known.push_back(alternative(builder, kernels[r], "its plan is the fastest"));
    }
    return rederive(with, chosen);
}

}  // namespace napkin
