#pragma once
// H* against M on logarithmic axes (paper.md §4, Eq. 1). It shows the optimum as a function of what a core holds, and
// each term of its standard form as a line whose slope is its exponent. It also shows the memory of the machine's
// levels, and the kernel's own H and M.
#include <optional>

#include "cost/cost_figures.hpp"
#include "draw/shapes.hpp"

namespace napkin::draw {

/// `extents`: of the axes. `core_values`: what a core of the machine holds, if there is one.
svg::Document transfers_chart(const Derived& derived, const KernelFigures& kernel, const Extents& extents,
                              std::optional<double> core_values, const std::string& subject);

}  // namespace napkin::draw
