#pragma once
// Flat axes. One axis stands for all values of its parts, as t for h and k in sum(h, k) A[q, h, k] · W[h, k, n].
// Its size is the product of theirs. Derivations sum along it, and no equation of a text runs over it.
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// Axes that stand beside each other, in one order, wherever one of them does, and that some equation reduces. Each run
/// has the outermost axis first. Axes of results are in none, nor are axes that the schedule names.
std::vector<std::vector<AxisId>> flat_runs(const Diagram& diagram);

/// The same for axes of results. Nothing reduces them, and a product has rows along them: one factor has them, and the
/// other has not. Or some equation reduces them, as a normalisation over several axes does.
std::vector<std::vector<AxisId>> flat_rows(const Diagram& diagram);
/// Whether some of these are reduced.
bool reduces_flat_rows(const Diagram& diagram);

/// The axes of which a flat axis is made, in the order of an array that has them all. Empty: it is no flat axis.
std::vector<AxisId> parts_of_flat_axis(const Diagram& diagram, AxisId axis);

/// The flat axis of these parts; -1: there is none.
AxisId flat_axis_of(const Diagram& diagram, const std::vector<AxisId>& parts);

/// What each part is where a flat axis of them has a value: t // (size of those behind it) % size of its own.
std::vector<Expr> values_of_parts(const std::vector<AxisId>& parts, const Expr& value);
/// The value of the flat axis where its parts have theirs: h * size(k) + k.
Expr value_of_flat_axis(const std::vector<AxisId>& parts);
/// The product of their sizes.
Size size_of_flat_axis(const std::vector<AxisId>& parts);

bool is_named_in_schedule(const Diagram& diagram, AxisId axis);

/// Adds a flat axis for each run of both kinds, and for all axes over which a sum multiplies two arrays, if an array
/// has them all. They are the last axes.
void add_flat_axes(Diagram& diagram);

}  // namespace napkin
