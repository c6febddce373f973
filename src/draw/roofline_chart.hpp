#pragma once
// The roofline of a machine with a kernel on it (paper.md §9). It has a roof for every unit that multiplies and adds,
// and a slope for the pipe into every level. Both are drawn at the datasheet's rates and, dashed, at the rates that
// programs sustain. The kernel has a point at every level's intensity, and at what was measured, if anything.
#include <string>
#include <vector>

#include "cost/on_machine.hpp"
#include "draw/shapes.hpp"
#include "machine/machine.hpp"

namespace napkin::draw {

/// A run that was measured, and the seconds that the model had predicted.
struct MeasuredPoint {
    std::string name;
    double predicted_s = 0, measured_s = 0;
};

/// Roofs are those of units that the kernels use, or of all where there are no kernels; a measured run stands at the
/// whole diagram's intensity.
svg::Document roofline_chart(const Machine& machine, const std::vector<KernelOnMachine>& kernels,
                             const std::vector<MeasuredPoint>& measured, const std::string& subject);

}  // namespace napkin::draw
