// Definition = every derivation step = the derived form on random partitions = its folds split and merged.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include "derive/derive.hpp"
#include "derive/evaluate_derived.hpp"
#include "derive/replay.hpp"
#include "derive/verify.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "support/random_diagram.hpp"

namespace napkin {
namespace {

constexpr std::uint64_t first_seed = 1;
constexpr std::uint64_t num_seeds = 2000;
constexpr double tolerance = 1e-8;

/// Where two evaluations differ; "" when they agree. Where the definition itself is undefined nothing is promised.
std::string difference(const Diagram& d, const Values& definition, const Values& other) {
    for (const ArrayId out : d.outputs) {
        const auto& a = definition[out];
        const auto& b = other[out];
        if (a.size() != b.size()) return d.array(out).name + " has another size";
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (std::isnan(a[i]) || a[i] == b[i]) continue;
            if (!(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(a[i]))))
                return d.array(out).name + "[" + std::to_string(i) + "]: " + std::to_string(a[i]) + " became " +
                       std::to_string(b[i]);
        }
    }
    return "";
}

PartitionSizes random_partition(const Derived& derived, const Extents& extents, std::mt19937_64& random) {
    PartitionSizes sizes;
    sizes.group.assign(extents.size(), 0);
    sizes.stream.assign(extents.size(), 0);
    const auto some = [&](AxisId a) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extents[a])) + 1;
    };
    for (const auto& kernel : derived.kernels) {
        for (const AxisId a : kernel.group_axes) sizes.group[static_cast<std::size_t>(a)] = some(a);
        for (const auto& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage))
                sizes.stream[static_cast<std::size_t>(loop->axis)] = some(loop->axis);
    }
    return sizes;
}

std::string failure(const Diagram& d, std::uint64_t seed, const DeriveOptions& options) {
    const auto derived = derive(d, options);
    if (!derived) return render(derived.errors());
    if (const auto faults = verify(*derived); !faults.empty()) return faults.front();
    const Extents extents = random_extents(d, seed);
    Values definition = random_inputs(d, extents, seed);
    evaluate(d, extents, definition);
    std::mt19937_64 random(seed);
    const PartitionSizes cut = random_partition(*derived, extents, random);
    for (Replay replay(*derived); !replay.done();) {
        replay.next();
        const std::string& rule = derived->steps[replay.steps_done() - 1].rule;
        if (const auto faults = verify(replay.diagram()); !faults.empty())
            return "step " + rule + ": " + faults.front();
        const Derived form = replay.form();
        Values after = random_inputs(d, extents, seed);
        after.resize(form.diagram.arrays.size());
        evaluate(form, extents, cut, after);
        if (auto text = difference(d, definition, after); !text.empty()) return "step " + rule + ": " + text;
    }
    for (int trial = 0; trial < 2; ++trial) {
        const PartitionSizes sizes = random_partition(*derived, extents, random);
        Values chunks = random_inputs(d, extents, seed);
        chunks.resize(derived->diagram.arrays.size());
        evaluate(*derived, extents, sizes, chunks);
        if (auto text = difference(d, definition, chunks); !text.empty()) return "chunks: " + text;
        Values merged = random_inputs(d, extents, seed);
        merged.resize(derived->diagram.arrays.size());
        evaluate_by_merge(*derived, extents, sizes, 0.3 + 0.4 * trial, merged);
        if (auto text = difference(d, definition, merged); !text.empty()) return "merge: " + text;
    }
    return "";
}

void run(const DeriveOptions& options) {
    std::cout << "seeds " << first_seed << " to " << first_seed + num_seeds - 1 << "\n";
    int failed = 0;
    for (std::uint64_t seed = first_seed; seed < first_seed + num_seeds && failed < 3; ++seed) {
        const Diagram d = random_diagram(seed);
        const std::string text = failure(d, seed, options);
        if (text.empty()) continue;
        ++failed;
        const Diagram small = reduce_failure(d, [&](const Diagram& c) { return !failure(c, seed, options).empty(); });
        ADD_FAILURE() << "seed " << seed << ": " << text << "\nreduced: " << failure(small, seed, options) << "\n"
                      << describe(small);
    }
}

TEST(Derive, EveryStepMeansTheDefinition) { run({}); }

TEST(Derive, AuxiliaryFormMeansTheDefinition) {
    DeriveOptions options;
    options.form = Form::auxiliary;
    run(options);
}

TEST(Derive, WhatIsComputedAgainMeansTheDefinition) {
    DeriveOptions options;
    options.rewriting.again = true;
    run(options);
}

TEST(Derive, OneKernelAnEquationMeansTheDefinition) {
    DeriveOptions options;
    options.fuse = false;
    run(options);
}

}  // namespace
}  // namespace napkin
