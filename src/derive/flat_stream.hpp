#pragma once
// A stream along several reduced axes at once: sum(h, k) f(h, k) is sum(t) f(t // size(k), t % size(k)), where t is a
// flat axis (diagram/flat_axes.hpp).
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// The flat axes along which the equations may be summed: some of them sum over exactly the axis' parts, which the
/// schedule does not name.
std::vector<AxisId> flat_axes_of(const Diagram& diagram, const std::vector<Equation>& equations);

/// The equations with their sums over the parts as sums over the flat axis. None where another equation among them has
/// one of the parts.
std::optional<std::vector<Equation>> along_flat_axis(const Diagram& diagram, std::vector<Equation> equations, AxisId flat);

}  // namespace napkin
