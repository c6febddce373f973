#include "check/sample.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "algebra/expr_walk.hpp"
#include "check/work.hpp"
#include "diagram/product.hpp"
#include "run/contraction.hpp"

namespace napkin {

namespace {

/// The axes of an index short of those at which it reads elements.
std::vector<AxisId> direct_axes(const Index& index) {
    if (!index.expression()) return index.axes();
    std::vector<AxisId> axes;
    for_each_postorder(
        *index.expression(),
        [&](const Expr& e) {
            if (const auto* i = as<AxisIndex>(e)) axes.push_back(i->axis);
        },
        Walk::values);
    return axes;
}

/// The axes of which values may be left out. No equation reduces such an axis. Every index that holds it is just that
/// axis, at the dimension that the array names by it.
std::vector<bool> axes_to_thin(const Diagram& diagram) {
    std::vector<bool> free(diagram.axes.size(), true);
    const auto pin = [&](AxisId axis) { free[at(axis)] = false; };
    for (const Equation& equation : diagram.equations) {
        for (const AxisId axis : equation.reduce_axes) pin(axis);
        visit(equation.body, [&](const Expr& e) {
            const auto* r = as<Read>(e);
            if (r == nullptr) return;
            const std::vector<AxisId>& dimensions = diagram.array(r->array).axes;
            for (std::size_t i = 0; i < r->indices.size(); ++i) {
                if (r->indices[i].is_axis(dimensions[i])) continue;
                pin(dimensions[i]);
                for (const AxisId axis : direct_axes(r->indices[i])) pin(axis);
            }
        });
    }
    return free;
}

std::vector<std::int64_t> choose(std::int64_t size, std::int64_t count, std::mt19937_64& random) {
    std::uniform_int_distribution<std::int64_t> any(0, size - 1);
    if (count == 1) return {any(random)};
    std::set<std::int64_t> kept = {0, size - 1};
    while (static_cast<std::int64_t>(kept.size()) < count) kept.insert(any(random));
    return {kept.begin(), kept.end()};
}

}  // namespace

double evaluation_points(const Diagram& diagram, const Extents& extents) {
    return sum<double>(diagram.equations,
                       [&](const Equation& equation) { return count_points(diagram, equation, extents); });
}

Sample sample_outputs(const Diagram& diagram, const Extents& extents, double operations, std::uint64_t seed) {
    Sample sample{diagram, extents, std::vector<std::vector<std::int64_t>>(extents.size()), {}};
    const std::vector<bool> free = axes_to_thin(diagram);
    // Halve the axis that has most values left until little enough remains. Single values are kept only where two of
    // each axis are too many.
    for (const std::int64_t fewest : {2, 1})
        while (evaluation_operations(diagram, sample.extents) > operations) {
            std::int64_t most = fewest;
            AxisId widest;
            for (const AxisId axis : extents.ids()) {
                if (free[axis] && sample.extents[axis] > most) {
                    most = sample.extents[axis];
                    widest = axis;
                }
            }
            if (widest < 0) break;
            sample.extents[widest] = std::max<std::int64_t>(fewest, (most + 1) / 2);
        }

    std::mt19937_64 random(seed);
    for (const AxisId axis : extents.ids()) {
        if (sample.extents[axis] == extents[axis]) continue;
        sample.kept[axis] = choose(extents[axis], sample.extents[axis], random);
        const auto id = axis;
        ArrayId coordinates = -1;
        for (Equation& equation : sample.diagram.equations) {
            equation.body = transform(equation.body, [&](const Expr& e) {
                if (const auto* size = as<AxisSize>(e); size && size->axis == id)
                    return integer_constant(extents[axis]);
                if (const auto* index = as<AxisIndex>(e); index && index->axis == id) {
                    if (coordinates < 0) {
                        coordinates = add_array(sample.diagram, diagram.axes[axis].name + "_kept", {id}, DType::i64,
                                                ArrayRole::input);
                        sample.diagram.inputs.push_back(coordinates);
                        sample.coordinates.emplace_back(id, coordinates);
                    }
                    return read(coordinates, {Affine::axis(id)});
                }
                return e;
            });
        }
    }
    return sample;
}

Column take_sample(const Sample& sample, ArrayId array, const Extents& full, const Column& values) {
    return take_sample(sample, array, full,
                       [&](std::int64_t place) { return values.at(static_cast<std::size_t>(place)); });
}

Column take_sample(const Sample& sample, ArrayId array, const Extents& full,
                   const std::function<Number(std::int64_t place)>& value) {
    const std::vector<AxisId>& axes = sample.diagram.array(array).axes;
    const std::vector<std::int64_t> strides = dense_strides(sample.diagram, array, full);
    const auto count = static_cast<std::size_t>(count_values(sample.diagram, array, sample.extents));
    Column result(sample.diagram.array(array).type, count, Number::real(0));
    std::vector<std::int64_t> point(axes.size(), 0);
    for (std::size_t place = 0; place < count; ++place) {
        std::int64_t offset = 0;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            const std::vector<std::int64_t>& kept = sample.kept[at(axes[i])];
            offset += strides[i] * (kept.empty() ? point[i] : kept[at(point[i])]);
        }
        result.set(place, value(offset));
        for (std::size_t i = axes.size(); i-- > 0;) {
            if (++point[i] < sample.extents[axes[i]]) break;
            point[i] = 0;
        }
    }
    return result;
}

void fill_coordinates(const Sample& sample, Values& values) {
    values.resize(sample.diagram.arrays.size());
    for (const auto& [axis, array] : sample.coordinates) {
        const std::vector<std::int64_t>& kept = sample.kept[at(axis)];
        values[array] = kept;
    }
}

}  // namespace napkin
