#pragma once
// A part of a diagram's outputs that is quick to evaluate and exact: some values of the woven axes, all values of the
// reduced.
#include <cstdint>
#include <functional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// The diagram over the kept values only: equal to the full one's outputs there. Where an axis' own coordinate or size
/// matters, the diagram reads it from an added input or has it as a constant.
struct Sample {
    Diagram diagram;
    Extents extents;
    std::vector<std::vector<std::int64_t>> kept;          ///< by AxisId: values kept, ascending; empty: all
    std::vector<std::pair<AxisId, ArrayId>> coordinates;  ///< added inputs that hold an axis' kept values
};

/// Points of all equations together, reductions included.
double evaluation_points(const Diagram& diagram, const Extents& extents);

/// Keeps only some values of the axes that are never reduced nor shifted, so that evaluating them takes at most about
/// this many operations (work.hpp), if possible. The first and last value are kept as long as an axis may keep two.
/// Those between follow from the seed.
Sample sample_outputs(const Diagram& diagram, const Extents& extents, double operations, std::uint64_t seed);

/// Values of an array of the full diagram at the kept places, row-major over the sample's extents. `value` gives the
/// number at a row-major place of the full array. It is only called for kept places.
Column take_sample(const Sample& sample, ArrayId array, const Extents& full,
                   const std::function<Number(std::int64_t place)>& value);
Column take_sample(const Sample& sample, ArrayId array, const Extents& full, const Column& values);

/// Fills in the coordinates' inputs.
void fill_coordinates(const Sample& sample, Values& values);

}  // namespace napkin
