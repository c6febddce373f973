#pragma once
// Which axes have one size by what the text says of it, whatever numbers are given. Axes that are as long by chance
// alone, as both are given as 4096, do not.
#include "diagram/diagram.hpp"

namespace napkin {

/// The axis' size as it is made of others', those in terms of others' again. One that is given as a number may be
/// replaced (`--set`), and is its own symbol. So is one that is rounded up.
Size size_by_axes(const Diagram& diagram, AxisId axis);

/// Whether both axes have one size by definition.
bool same_size(const Diagram& diagram, AxisId a, AxisId b);

}  // namespace napkin
