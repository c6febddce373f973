#pragma once
// Costs over a range of sizes: expected seconds of every subject along the last axis of a sweep. The chart also shows
// the bound that no schedule beats, and the sizes at which the best subject changes.
#include "draw/shapes.hpp"
#include "study/sweep.hpp"

namespace napkin::draw {

/// A line for every subject and for every choice of the other axes' sizes.
svg::Document sweep_chart(const Sweep& sweep);

}  // namespace napkin::draw
