#pragma once
// One diagram taken through every room up to the tile program, everything checked against its definition; and the reduction of a
// case that fails to a small one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cost/exact.hpp"
#include "derive/evaluate_derived.hpp"
#include "derive/verify.hpp"
#include "diagram/verifier.hpp"
#include "tile/expand.hpp"
#include "tile/interpret.hpp"
#include "tile/print.hpp"
#include "tile/verify.hpp"

namespace napkin::pipeline {

struct Case {
    Diagram diagram;
    Extents extents;
    std::vector<std::int64_t> group, stream;  ///< by AxisId; 0: the whole axis
    Form form = Form::unscaled;
    bool fuse = true;
    std::uint64_t seed = 0;  ///< of the inputs' values
};

inline std::string to_string(const Case& c) {
    std::string out;
    for (const ArrayId id : c.diagram.inputs) {
        const Array& a = c.diagram.array(id);
        std::vector<std::string> axes;
        for (const AxisId axis : a.axes) axes.push_back(c.diagram.axis(axis).name);
        out += fmt::format("    {}[{}]: {}\n", a.name, fmt::join(axes, ", "), name(a.type));
    }
    for (const Equation& e : c.diagram.equations)
        out += fmt::format("    {}{}\n", to_string(c.diagram, e), c.diagram.array(e.target).role == ArrayRole::output ? "   (output)" : "");
    for (std::size_t a = 0; a < c.extents.size(); ++a)
        out += fmt::format("    {} = {}, group {}, stream {}\n", c.diagram.axes[a].name, c.extents[a], c.group[a], c.stream[a]);
    return out + fmt::format("    form {}, fuse {}, values {}\n", c.form == Form::auxiliary ? "auxiliary" : "unscaled", c.fuse, c.seed);
}

/// How the outputs of `diagram` differ from the reference of `source`, or "". Where the definition is not finite nothing is
/// promised. Sums of thousands of values in another order differ in their last digits, relative to the largest of them.
inline std::string difference(const Diagram& source, const Values& reference, const Diagram& diagram, const Values& values) {
    for (const ArrayId id : source.outputs) {
        const std::string& name = source.array(id).name;
        const auto other = diagram.find_array(name);
        if (!other) return fmt::format("{} is gone", name);
        const auto& want = reference[static_cast<std::size_t>(id)];
        const auto& have = values[static_cast<std::size_t>(*other)];
        if (want.size() != have.size()) return fmt::format("{} has {} values in place of {}", name, have.size(), want.size());
        double scale = 1;
        for (const double w : want)
            if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
        for (std::size_t i = 0; i < want.size(); ++i)
            if (std::isfinite(want[i]) && !(std::abs(want[i] - have[i]) <= 1e-8 * scale))
                return fmt::format("{} at {} is {} in place of {}", name, i, have[i], want[i]);
    }
    return "";
}

/// Inputs of the case for a diagram with the same inputs, by name.
inline Values inputs_for(const Diagram& diagram, const Diagram& source, const Values& given) {
    Values values(diagram.arrays.size());
    for (const ArrayId id : source.inputs)
        if (const auto other = diagram.find_array(source.array(id).name)) values[static_cast<std::size_t>(*other)] = given[static_cast<std::size_t>(id)];
    return values;
}

inline Plan plan_of(const Case& c, const Derived& derived) {
    Plan plan;
    for (const Kernel& kernel : derived.kernels) {
        KernelPlan k;
        k.kernel = kernel.name;
        for (const AxisId a : kernel.group_axes)
            if (const std::int64_t g = c.group[static_cast<std::size_t>(a)]; g > 0) k.group[derived.diagram.axis(a).name] = {g, "", true};
        for (std::size_t a = 0; a < c.stream.size(); ++a)
            if (c.stream[a] > 0) k.stream[derived.diagram.axes[a].name] = {c.stream[a], "", true};
        plan.kernels.push_back(std::move(k));
    }
    return plan;
}

inline std::string differences(const Diagram& diagram, const KernelCounts& counted, const ExactCosts& model) {
    const auto differ = [](const char* what, std::int64_t a, std::int64_t b) { return a == b ? "" : fmt::format("{} counted {}, model {}; ", what, a, b); };
    std::string out = differ("loaded", counted.transfers_loaded, model.loaded) + differ("stored", counted.transfers_stored, model.stored) +
                      differ("peak", counted.peak_values, model.peak_memory) + differ("groups", counted.groups, model.groups) +
                      differ("chunks run", counted.chunks_run, model.chunks_run) +
                      differ("chunks skipped", counted.chunks_skipped, model.chunks_skipped);
    std::map<std::string, std::int64_t> by_array;
    for (const ArrayCount& a : model.arrays) by_array[diagram.array(a.array).name] += a.loaded + a.stored;
    std::erase_if(by_array, [](const auto& entry) { return entry.second == 0; });
    auto counted_by_array = counted.by_array;
    std::erase_if(counted_by_array, [](const auto& entry) { return entry.second == 0; });
    if (by_array != counted_by_array) out += "the counts of the arrays differ; ";
    return out;
}

/// What was seen on the way, so that a test can say how much it covered.
struct Coverage {
    std::int64_t kernels = 0, loops = 0, states = 0, merges = 0, steps = 0, skipped_chunks = 0, streamed_cases = 0;
};

/// "" when the case passes every check, else which one it fails and how.
inline std::string check(const Case& c, Coverage& seen) {
    const Values given = random_inputs(c.diagram, c.extents, c.seed);
    Values reference = given;
    evaluate(c.diagram, c.extents, reference);

    DeriveOptions options;
    options.form = c.form;
    options.fuse = c.fuse;
    const auto result = derive(c.diagram, options);
    if (!result.ok()) return "derive: " + render(result.errors());
    const Derived& derived = *result;
    if (const auto faults = verify(derived); !faults.empty()) return fmt::format("derived: {}", fmt::join(faults, "; "));
    if (derived.diagram.axes.size() != c.extents.size()) return "derive: the axes changed";

    for (const DerivationStep& step : derived.steps) {
        Values values = inputs_for(step.after, c.diagram, given);
        evaluate(step.after, c.extents, values);
        if (const auto d = difference(c.diagram, reference, step.after, values); !d.empty()) return fmt::format("step {}: {}", step.rule, d);
        ++seen.steps;
    }

    const PartitionSizes sizes{c.group, c.stream};
    const auto fresh = [&] { return inputs_for(derived.diagram, c.diagram, given); };
    Values values = fresh();
    evaluate(derived, c.extents, sizes, values);
    if (const auto d = difference(c.diagram, reference, derived.diagram, values); !d.empty()) return "derived form: " + d;
    for (const double split : {0.3, 0.7}) {
        values = fresh();
        seen.merges += evaluate_by_merge(derived, c.extents, sizes, split, values);
        if (const auto d = difference(c.diagram, reference, derived.diagram, values); !d.empty()) return fmt::format("merge at {}: {}", split, d);
    }

    const Plan plan = plan_of(c, derived);
    const TileProgram program = expand(derived, c.extents, plan);
    if (const auto faults = verify(program); !faults.empty()) return fmt::format("tile program: {}", fmt::join(faults, "; "));
    values = fresh();
    const auto counts = interpret(program, values);
    if (const auto d = difference(c.diagram, reference, derived.diagram, values); !d.empty()) return "interpreter: " + d;
    for (std::size_t k = 0; k < counts.size(); ++k) {
        const ExactCosts costs = exact_costs(derived, derived.kernels[k], c.extents, plan.kernels[k]);
        if (const auto d = differences(derived.diagram, counts[k], costs); !d.empty()) return fmt::format("counts of {}: {}", derived.kernels[k].name, d);
        seen.skipped_chunks += counts[k].chunks_skipped;
    }

    const std::string text = to_string(program);
    const auto parsed = parse_tile(text, derived);
    if (!parsed.ok()) return "parse: " + render(parsed.errors());
    if (to_string(*parsed) != text) return "parse: the text read back prints otherwise";

    bool streams = false;
    for (const Kernel& kernel : derived.kernels)
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) streams = true, ++seen.loops, seen.states += static_cast<std::int64_t>(loop->init.size());
    seen.kernels += static_cast<std::int64_t>(derived.kernels.size());
    seen.streamed_cases += streams;
    return "";
}

/// check(), with what is thrown as a failure too.
inline std::string failure_of(const Case& c, Coverage& seen) {
    try {
        return check(c, seen);
    } catch (const std::exception& e) {
        return fmt::format("thrown: {}", e.what());
    }
}

/// Makes every array an input or nothing that no output needs any more.
inline void prune(Diagram& d) {
    std::set<ArrayId> needed(d.outputs.begin(), d.outputs.end());
    for (auto e = d.equations.rbegin(); e != d.equations.rend(); ++e)
        if (needed.contains(e->target))
            for (const ArrayId id : read_arrays(e->body)) needed.insert(id);
    std::erase_if(d.equations, [&](const Equation& e) { return !needed.contains(e.target); });
    std::erase_if(d.inputs, [&](ArrayId id) { return !needed.contains(id); });
    // Ids are positions: arrays that are gone take theirs with them.
    std::vector<ArrayId> renamed(d.arrays.size(), -1);
    std::vector<Array> kept;
    for (std::size_t a = 0; a < d.arrays.size(); ++a)
        if (needed.contains(static_cast<ArrayId>(a))) renamed[a] = static_cast<ArrayId>(kept.size()), kept.push_back(d.arrays[a]);
    const auto rename = [&](ArrayId& id) { id = renamed[static_cast<std::size_t>(id)]; };
    d.arrays = std::move(kept);
    std::for_each(d.inputs.begin(), d.inputs.end(), rename);
    std::for_each(d.outputs.begin(), d.outputs.end(), rename);
    for (Equation& e : d.equations) {
        rename(e.target);
        e.body = transform(e.body, [&](const Expr& node) {
            const Read* r = as<Read>(node);
            return r ? read(renamed[static_cast<std::size_t>(r->array)], r->indices) : node;
        });
    }
}

/// Smaller variants of a case, bolder ones first.
inline std::vector<Case> smaller(const Case& c) {
    std::vector<Case> out;
    const auto add = [&](const std::function<void(Case&)>& change) {
        Case copy = c;
        change(copy);
        prune(copy.diagram);
        if (verify(copy.diagram).empty()) out.push_back(std::move(copy));
    };
    for (std::size_t o = 0; c.diagram.outputs.size() > 1 && o < c.diagram.outputs.size(); ++o)
        add([&](Case& s) {
            s.diagram.arrays[static_cast<std::size_t>(s.diagram.outputs[o])].role = ArrayRole::temporary;
            s.diagram.outputs.erase(s.diagram.outputs.begin() + static_cast<std::ptrdiff_t>(o));
        });
    for (std::size_t e = 0; e < c.diagram.equations.size(); ++e) {
        const ArrayId target = c.diagram.equations[e].target;
        if (c.diagram.array(target).role == ArrayRole::temporary) {
            add([&](Case& s) {  // a result becomes an input
                s.diagram.arrays[static_cast<std::size_t>(target)].role = ArrayRole::input;
                s.diagram.inputs.push_back(target);
                s.diagram.equations.erase(s.diagram.equations.begin() + static_cast<std::ptrdiff_t>(e));
            });
            add([&](Case& s) {  // or the output
                for (const ArrayId o : s.diagram.outputs) s.diagram.arrays[static_cast<std::size_t>(o)].role = ArrayRole::temporary;
                s.diagram.outputs = {target};
                s.diagram.arrays[static_cast<std::size_t>(target)].role = ArrayRole::output;
            });
        }
        std::vector<Expr> nodes;
        visit(c.diagram.equations[e].body, [&](const Expr& node) { nodes.push_back(node); });
        for (const Expr& node : nodes) {
            for (const Expr& child : children(node))
                add([&](Case& s) {
                    Expr& body = s.diagram.equations[e].body;
                    body = transform(body, [&](const Expr& n) { return equal(n, node) ? child : n; });
                });
            if (!as<Constant>(node)) add([&](Case& s) {
                    Expr& body = s.diagram.equations[e].body;
                    body = transform(body, [&](const Expr& n) { return equal(n, node) ? constant(1) : n; });
                });
        }
    }
    for (std::size_t a = 0; a < c.extents.size(); ++a) {
        if (c.group[a] > 0) add([&](Case& s) { s.group[a] = 0; });
        if (c.stream[a] > 0) add([&](Case& s) { s.stream[a] = 0; });
        // An affine read ties extents together: only axes that no such read mentions shrink alone.
        bool tied = c.diagram.axes[a].size.has_value();
        for (const Equation& e : c.diagram.equations)
            visit(e.body, [&](const Expr& node) {
                if (const Read* r = as<Read>(node))
                    for (std::size_t i = 0; i < r->indices.size(); ++i)
                        tied |= !r->indices[i].is_axis(c.diagram.array(r->array).axes[i]) &&
                                (r->indices[i].coefficient(static_cast<AxisId>(a)) != 0 || c.diagram.array(r->array).axes[i] == static_cast<AxisId>(a));
            });
        if (!tied && c.extents[a] > 1) add([&](Case& s) { s.extents[a] = 1; });
        if (!tied && c.extents[a] > 2) add([&](Case& s) { --s.extents[a]; });
    }
    if (c.form != Form::unscaled) add([](Case& s) { s.form = Form::unscaled; });
    return out;
}

/// The smallest case that still fails, found greedily; at most `budget` variants are tried.
inline Case reduced(Case c, int budget = 2000) {
    Coverage ignored;
    for (bool again = true; again;) {
        again = false;
        for (const Case& s : smaller(c)) {
            if (--budget < 0) return c;
            if (failure_of(s, ignored).empty()) continue;
            c = s;
            again = true;
            break;
        }
    }
    return c;
}

}  // namespace napkin::pipeline
