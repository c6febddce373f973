#include "property/pipeline_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "check/agreement.hpp"
#include "derive/evaluate_derived.hpp"
#include "derive/replay.hpp"
#include "derive/verify.hpp"
#include "support/ids.hpp"
#include "support/random_diagram.hpp"
#include "syntax/print.hpp"
#include "tile/exact.hpp"
#include "tile/expand.hpp"
#include "tile/interpret.hpp"
#include "tile/print.hpp"
#include "tile/verify.hpp"

namespace napkin::pipeline {
namespace {

std::string differences(const Counts& counted, const Counts& model) {
    const auto differ = [](const char* what, std::int64_t a, std::int64_t b) {
        return a == b ? "" : fmt::format("{} counted {}, model {}; ", what, a, b);
    };
    std::string out = differ("loaded", counted.loaded, model.loaded) + differ("stored", counted.stored, model.stored) +
                      differ("peak", counted.peak_memory, model.peak_memory) +
                      differ("groups", counted.groups, model.groups) +
                      differ("chunks run", counted.chunks_run, model.chunks_run) +
                      differ("chunks skipped", counted.chunks_skipped, model.chunks_skipped);
    if (out.empty() && counted != model) out = "the counts of the arrays or the bytes differ";
    return out;
}

std::string check(const Case& c, Coverage& seen) {
    const Values given = probe_inputs(c.diagram, c.extents, c.probe, c.seed);
    const Definition definition(c.diagram, c.extents, given);

    DeriveOptions options;
    options.form = c.form;
    options.fuse = c.fuse;
    const auto result = derive(c.diagram, options);
    if (!result.ok()) return "derive: " + render(result.errors());
    const Derived& derived = *result;
    if (const auto faults = verify(derived); !faults.empty())
        return fmt::format("derived: {}", fmt::join(faults, "; "));
    if (derived.diagram.axes.size() != c.extents.size()) return "derive: the axes changed";

    for (Replay replay(derived); !replay.done(); ++seen.steps) {
        replay.next();
        const Derived form = replay.form();
        Values values = inputs_for(form.diagram, c.diagram, given);
        evaluate(form, c.extents, c.sizes, values);
        if (const auto d = definition.difference(form.diagram, values))
            return fmt::format("step {}: {}", derived.steps[replay.steps_done() - 1].rule, to_string(*d));
    }

    const auto fresh = [&] { return inputs_for(derived.diagram, c.diagram, given); };
    Values values = fresh();
    evaluate(derived, c.extents, c.sizes, values);
    if (const auto d = definition.difference(derived.diagram, values)) return "derived form: " + to_string(*d);
    for (const double split : {0.3, 0.7}) {
        values = fresh();
        seen.merges += evaluate_by_merge(derived, c.extents, c.sizes, split, values);
        if (const auto d = definition.difference(derived.diagram, values))
            return fmt::format("merge at {}: {}", split, to_string(*d));
    }

    std::vector<TileSizes> cuts;
    for (const Kernel& kernel : derived.kernels) {
        cuts.push_back({c.sizes.group, c.sizes.stream});
        for (std::size_t a = 0; a < c.extents.size(); ++a)
            if (!contains(kernel.group_axes, static_cast<AxisId>(a))) cuts.back().group[a] = 0;
    }
    const SizedProgram program = sized(expand(derived), c.extents, cuts);
    if (const auto faults = verify(program); !faults.empty())
        return fmt::format("tile program: {}", fmt::join(faults, "; "));
    values = fresh();
    const auto counts = interpret(program, values);
    if (const auto d = definition.difference(derived.diagram, values)) return "interpreter: " + to_string(*d);
    for (std::size_t k = 0; k < counts.size(); ++k) {
        if (const auto d = differences(counts[k], exact_costs(program, k)); !d.empty())
            return fmt::format("counts of {}: {}", derived.kernels[k].name, d);
        seen.chunks_skipped += counts[k].chunks_skipped;
    }

    const std::string text = to_string(program);
    const auto parsed = parse_tile(text, derived);
    if (!parsed.ok()) return "parse: " + render(parsed.errors());
    if (to_string(*parsed) != text) return "parse: the text read back prints otherwise";

    for (const Kernel& kernel : derived.kernels) {
        std::size_t statements = 0;
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage))
                ++seen.loops, seen.states += static_cast<std::int64_t>(loop->init.size()), statements += loop->body.size();
            else
                statements += std::get<Block>(stage).statements.size();
        ++seen.kernels;
        seen.fused_kernels += statements > 1;
    }
    for (const TileKernel& kernel : program.kernels)
        for (const Variable& v : kernel.variables)
            seen.halos += std::any_of(v.dims.begin(), v.dims.end(), [](const Index& d) { return d.axes().size() > 1; });
    return "";
}

}  // namespace

Case make_case(const Diagram& diagram, std::uint64_t seed, Probe probe) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
    Case c;
    c.diagram = diagram;
    c.extents = random_extents(diagram, seed);
    c.probe = probe;
    c.seed = seed;
    for (const std::int64_t extent : c.extents) {
        c.sizes.group.push_back(pick(4) == 0 ? 0 : 1 + pick(extent));
        c.sizes.stream.push_back(pick(4) == 0 ? 0 : 1 + pick(extent));
    }
    c.form = pick(4) == 0 ? Form::auxiliary : Form::unscaled;
    c.fuse = pick(8) != 0;
    return c;
}

std::string describe(const Case& c) {
    std::string out = napkin::describe(c.diagram);
    for (std::size_t a = 0; a < c.extents.size(); ++a)
        out += fmt::format("{} = {}, group {}, stream {}\n", c.diagram.axes[a].name, c.extents[a], c.sizes.group[a],
                           c.sizes.stream[a]);
    return out + fmt::format("form {}, fuse {}, {} inputs, seed {}\n",
                             c.form == Form::auxiliary ? "auxiliary" : "unscaled", c.fuse, name(c.probe), c.seed);
}

std::string failure_of(const Case& c, Coverage& seen) {
    try {
        return check(c, seen);
    } catch (const std::exception& e) {
        return fmt::format("thrown: {}", e.what());
    }
}

std::string made_small(const Case& c) {
    constexpr std::uint64_t tries = 6;
    Coverage ignored;
    const auto failing_seed = [&](const Diagram& d) {
        for (std::uint64_t s = c.seed; s < c.seed + tries; ++s)
            if (!failure_of(make_case(d, s, c.probe), ignored).empty()) return s;
        return c.seed + tries;
    };
    const Diagram small = reduce_failure(c.diagram, [&](const Diagram& d) { return failing_seed(d) < c.seed + tries; });
    const Case least = make_case(small, failing_seed(small), c.probe);
    return fmt::format("reduced to\n{}{}{}\n", print(small), describe(least), failure_of(least, ignored));
}

}  // namespace napkin::pipeline
