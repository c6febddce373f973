#pragma once
// Axes over which only rewritten diagrams run. They are the last ones of a diagram, and their sizes follow from others.
#include "diagram/diagram.hpp"

namespace napkin {

/// Whether the axis is hidden: its size follows from others, and no array, equation or count of rows has to do with it.
bool is_hidden(const Diagram& diagram, AxisId axis);

/// The hidden axis of this size, rounded up to the multiple, other than those that are taken; -1: there is none.
AxisId free_axis(const Diagram& diagram, const Size& size, const std::vector<AxisId>& taken, std::int64_t multiple = 1);
/// The same. Where there is none it is added, under the name of the axis `like` with this behind it.
AxisId free_axis_of(Diagram& diagram, const Size& size, const std::vector<AxisId>& taken, AxisId like,
                    const std::string& suffix, std::int64_t multiple = 1);

/// The diagram with all hidden axes. They are flat ones (flat_axes.hpp), those of padded arrays (padded_reads.hpp), of
/// groups (grouped_rows.hpp), of packed terms (packed_terms.hpp), of phases (phases.hpp) and of windows
/// (unrolled_windows.hpp, window_rows.hpp). The last are flat ones of padded diagrams.
Diagram with_hidden_axes(Diagram diagram);

/// The axes that are no hidden ones, which a text has itself.
std::vector<AxisId> axes_of_text(const Diagram& diagram);

}  // namespace napkin
