#pragma once
// Random sizes below, at and past those of vectors and blocks.
#include <optional>
#include <random>

#include "check/sample.hpp"
#include "check/small_sizes.hpp"
#include "diagram/blocks.hpp"
#include "diagram/sizes.hpp"
#include "support/ranges.hpp"

namespace napkin {

/// Sizes of at most `most`, half of them of at most 9, where the diagram can have them; else none. All equations
/// together have at most so many points.
inline std::optional<SizesByName> ragged_sizes(const Diagram& diagram, std::mt19937_64& random, std::uint64_t most,
                                               double most_points) {
    const std::vector<AxisId> fixed = fixed_axes(diagram);
    for (int attempt = 0; attempt < 40; ++attempt) {
        SizesByName drawn;
        for (const AxisId a : diagram.axes.ids())
            if (const Axis& axis = diagram.axes[a]; (!axis.size || axis.size->as_constant()) && !contains(fixed, a))
                drawn[axis.name] = 1 + static_cast<std::int64_t>(random() % (random() % 2 == 0 ? 9 : most));
        const auto extents = bind_sizes(diagram, drawn);
        if (extents && evaluation_points(diagram, *extents) <= most_points) return drawn;
    }
    return std::nullopt;
}

}  // namespace napkin
