#include "check/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "check/sample.hpp"
#include "derive/derive.hpp"
#include "derive/evaluate_derived.hpp"
#include "derive/replay.hpp"

namespace napkin {

namespace {
/// Share of the remaining budget that one trial may take.
constexpr double share_of_a_trial = 0.25;
/// Evaluating the definition with its bounds takes as long as so many evaluations without.
constexpr double of_bounds = 4;
/// Partitions that are drawn to find one that repeats little work.
constexpr int most_partitions = 20;

/// A size from 1 to the extent for every axis; the loops and groups that a kernel has take theirs from it.
PartitionSizes any_partition(const Derived& derived, const Extents& extents, std::mt19937_64& random) {
    PartitionSizes sizes;
    sizes.group.assign(extents.size(), 0);
    sizes.stream.assign(extents.size(), 0);
    const auto any = [&](AxisId axis) { return std::uniform_int_distribution<std::int64_t>(1, extents[axis])(random); };
    for (const Kernel& kernel : derived.kernels) {
        for (const AxisId axis : kernel.group_axes) sizes.group[at(axis)] = any(axis);
        for (const Stage& stage : kernel.stages) {
            if (const auto* loop = std::get_if<Loop>(&stage)) sizes.stream[at(loop->axis)] = any(loop->axis);
        }
    }
    return sizes;
}

/// One of which two evaluations take at most so many operations, or else the least of those that were drawn.
PartitionSizes random_partition(const Derived& derived, const Extents& extents, std::mt19937_64& random, double allowed) {
    PartitionSizes best;
    double least = infinity;
    for (int drawn = 0; drawn < most_partitions && 2 * least > allowed; ++drawn) {
        PartitionSizes sizes = any_partition(derived, extents, random);
        if (const double operations = evaluation_operations(derived, extents, sizes); operations < least)
            best = std::move(sizes), least = operations;
    }
    return best;
}

/// The largest relative distance of outputs that are finite on both sides.
double distance(const Definition& definition, const Diagram& source, const Diagram& other, const Values& made) {
    double largest = 0;
    for (const ArrayId id : source.outputs) {
        const Column& want = definition.values().value[id];
        const auto& have = made[*other.find_array(source.array(id).name)];
        for (std::size_t i = 0; i < want.size(); ++i) {
            const double error = std::abs(have[i] - want[i]) / std::max(1.0, std::abs(want[i]));
            if (std::isfinite(want[i]) && std::isfinite(error)) largest = std::max(largest, error);
        }
    }
    return largest;
}

}  // namespace

std::string to_string(const Counterexample& c) {
    std::string sizes;
    for (const auto& [axis, size] : c.sizes) sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", axis, size);
    return fmt::format("{}; {} inputs, seed {}{}{}", to_string(c.element), name(c.probe), c.seed,
                       sizes.empty() ? "" : "; ", sizes);
}

std::vector<StepValidation> validate(const Derived& derived, const ValidateOptions& options) {
    double left = options.operations;
    const double evaluations = static_cast<double>(options.steps ? derived.steps.size() : 0) + of_bounds;
    std::mt19937_64 random(options.seed);
    std::vector<StepValidation> result;
    if (options.steps)
        for (const DerivationStep& step : derived.steps) result.push_back({step.rule});
    result.push_back({"derived form"});
    result.push_back({"split and merge"});
    StepValidation& form = result[result.size() - 2];
    StepValidation& merge = result.back();

    for (int trial = 0; trial < options.trials; ++trial) {
        const double allowed = left * share_of_a_trial;
        const auto drawn = small_sizes(derived.source, random, [&](const Extents& extents) {
            return evaluations * evaluation_operations(derived.source, extents) <= allowed / 2;
        });
        if (!drawn) continue;
        const SizesByName& sizes = drawn->sizes;
        const Extents source_extents = extents_of(derived.source, sizes);
        const Probe probe = options.probes[static_cast<std::size_t>(trial) % options.probes.size()];
        const std::uint64_t seed = random();
        const Values inputs = probe_inputs(derived.source, source_extents, probe, seed);
        const Definition definition(derived.source, source_extents, inputs);
        const auto judge = [&](StepValidation& validation, const Diagram& diagram, const Values& made) {
            ++validation.trials;
            validation.cut_trials += drawn->are_cut;
            validation.error = std::max(validation.error, distance(definition, derived.source, diagram, made));
            if (validation.wrong) return;
            if (const auto element = definition.difference(diagram, made))
                validation.wrong = Counterexample{*element, probe, sizes, seed};
        };
        const Extents extents = extents_of(derived.diagram, sizes);
        const PartitionSizes partition = random_partition(derived, extents, random, allowed / 2);
        left -= evaluations * evaluation_operations(derived.source, source_extents) +
                2 * evaluation_operations(derived, extents, partition);
        for (Replay replay(derived); options.steps && !replay.done();) {
            replay.next();
            const Derived after = replay.form();
            Values values = inputs_for(after.diagram, derived.source, inputs);
            evaluate(after, extents, partition, values);
            judge(result[replay.steps_done() - 1], after.diagram, values);
        }
        Values values = inputs_for(derived.diagram, derived.source, inputs);
        evaluate(derived, extents, partition, values);
        judge(form, derived.diagram, values);
        values = inputs_for(derived.diagram, derived.source, inputs);
        evaluate_by_merge(derived, extents, partition, std::uniform_real_distribution<double>(0.05, 0.95)(random), values);
        judge(merge, derived.diagram, values);
    }
    return result;
}

}  // namespace napkin
