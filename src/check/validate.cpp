#include "check/validate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "derive/derive.hpp"
#include "derive/evaluate_derived.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

namespace {

constexpr std::int64_t largest_size = 9;
constexpr double largest_points = 2e6;  ///< of one evaluation: a trial takes milliseconds

using Sizes = std::map<std::string, std::int64_t>;
using Arrays = std::map<std::string, std::vector<double>>;

std::size_t at(int id) { return static_cast<std::size_t>(id); }

/// Sizes by name for the axes that have no expression in other axes, small enough to evaluate; nullopt where none was found.
std::optional<Sizes> random_sizes(const Diagram& diagram, std::mt19937_64& random) {
    for (int attempt = 0; attempt < 50; ++attempt) {
        Sizes sizes;
        // Windows that reach over an edge need room: later attempts draw larger sizes.
        std::uniform_int_distribution<std::int64_t> any(attempt < 20 ? 1 : 3, largest_size + attempt / 5);
        for (const Axis& axis : diagram.axes) {
            if (!axis.size || axis.size->as_constant()) sizes[axis.name] = any(random);
        }
        const auto extents = bind_sizes(diagram, sizes);
        if (extents) {
            Sizes all;
            for (std::size_t i = 0; i < extents->size(); ++i) all[diagram.axes[i].name] = (*extents)[i];
            return all;
        }
    }
    // Fixed sizes may be the only ones that fit together.
    const auto extents = bind_sizes(diagram);
    if (!extents) return std::nullopt;
    Sizes all;
    for (std::size_t i = 0; i < extents->size(); ++i) all[diagram.axes[i].name] = (*extents)[i];
    return all;
}

Extents extents_by_name(const Diagram& diagram, const Sizes& sizes) {
    Extents extents;
    for (const Axis& axis : diagram.axes) {
        const auto known = sizes.find(axis.name);
        extents.push_back(known == sizes.end() ? 1 : known->second);
    }
    return extents;
}

double points_of(const Diagram& diagram, const Extents& extents) {
    double total = 0;
    for (const Equation& equation : diagram.equations) {
        double points = 1;
        for (const AxisId axis : diagram.array(equation.target).axes) points *= static_cast<double>(extents[at(axis)]);
        for (const AxisId axis : equation.reduce_axes) points *= static_cast<double>(extents[at(axis)]);
        total += points;
    }
    return total;
}

Arrays inputs_by_name(const Diagram& diagram, const Extents& extents, std::uint64_t seed) {
    const Values values = random_inputs(diagram, extents, seed);
    Arrays arrays;
    for (const ArrayId id : diagram.inputs) arrays[diagram.array(id).name] = values[at(id)];
    return arrays;
}

Values values_of(const Diagram& diagram, const Arrays& inputs) {
    Values values(diagram.arrays.size());
    for (const ArrayId id : diagram.inputs) values[at(id)] = inputs.at(diagram.array(id).name);
    return values;
}

Arrays outputs_by_name(const Diagram& diagram, const Values& values) {
    Arrays arrays;
    for (const ArrayId id : diagram.outputs) arrays[diagram.array(id).name] = values[at(id)];
    return arrays;
}

Arrays evaluated(const Diagram& diagram, const Sizes& sizes, const Arrays& inputs) {
    Values values = values_of(diagram, inputs);
    evaluate(diagram, extents_by_name(diagram, sizes), values);
    return outputs_by_name(diagram, values);
}

double distance(const Arrays& a, const Arrays& b) {
    double largest = 0;
    for (const auto& [name, exact] : b) {
        const auto found = a.find(name);
        if (found == a.end() || found->second.size() != exact.size()) return std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < exact.size(); ++i) {
            const double x = found->second[i], y = exact[i];
            if (x == y || (std::isnan(x) && std::isnan(y))) continue;
            const double error = std::abs(x - y) / std::max(1.0, std::abs(y));
            largest = std::max(largest, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
        }
    }
    return largest;
}

/// A size from 1 to the extent for every axis; the loops and groups that a kernel has take theirs from it.
PartitionSizes random_partition(const Derived& derived, const Extents& extents, std::mt19937_64& random) {
    PartitionSizes sizes;
    sizes.group.assign(extents.size(), 0);
    sizes.stream.assign(extents.size(), 0);
    const auto any = [&](AxisId axis) {
        return std::uniform_int_distribution<std::int64_t>(1, extents[at(axis)])(random);
    };
    for (const Kernel& kernel : derived.kernels) {
        for (const AxisId axis : kernel.group_axes) sizes.group[at(axis)] = any(axis);
        for (const Stage& stage : kernel.stages) {
            if (const auto* loop = std::get_if<Loop>(&stage)) sizes.stream[at(loop->axis)] = any(loop->axis);
        }
    }
    return sizes;
}

}  // namespace

std::vector<StepValidation> validate(const Derived& derived, int trials, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<StepValidation> result;
    for (const DerivationStep& step : derived.steps) result.push_back({step.rule, 0, 0});
    result.push_back({"derived form", 0, 0});
    result.push_back({"split and merge", 0, 0});
    StepValidation& form = result[result.size() - 2];
    StepValidation& merge = result.back();

    for (int trial = 0; trial < trials; ++trial) {
        const std::optional<Sizes> sizes = random_sizes(derived.source, random);
        if (!sizes || points_of(derived.source, extents_by_name(derived.source, *sizes)) > largest_points) continue;
        const Arrays inputs = inputs_by_name(derived.source, extents_by_name(derived.source, *sizes), random());
        const auto note = [&](StepValidation& validation, const Arrays& made, const Arrays& wanted) {
            validation.error = std::max(validation.error, distance(made, wanted));
            ++validation.trials;
        };
        for (std::size_t i = 0; i < derived.steps.size(); ++i) {
            note(result[i], evaluated(derived.steps[i].after, *sizes, inputs),
                 evaluated(derived.steps[i].before, *sizes, inputs));
        }
        const Arrays definition = evaluated(derived.source, *sizes, inputs);
        const Extents extents = extents_by_name(derived.diagram, *sizes);
        const PartitionSizes partition = random_partition(derived, extents, random);
        Values values = values_of(derived.diagram, inputs);
        evaluate(derived, extents, partition, values);
        note(form, outputs_by_name(derived.diagram, values), definition);
        values = values_of(derived.diagram, inputs);
        evaluate_by_merge(derived, extents, partition, std::uniform_real_distribution<double>(0.05, 0.95)(random), values);
        note(merge, outputs_by_name(derived.diagram, values), definition);
    }
    return result;
}

}  // namespace napkin
