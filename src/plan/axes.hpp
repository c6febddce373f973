#pragma once
// Chooses the axes along which a kernel's code may fill its vectors.
#include <string>
#include <vector>

#include "schedule/simulate.hpp"

namespace napkin {

struct VectorAxis {
    AxisId axis = -1;  ///< -1: every statement uses an axis of its own
    std::string reason;
    bool vertical = false;  ///< no reduction of the heavy statements runs across the lanes of a vector
};

/// Candidates, never none. First come the grouped axes that every state and the targets of all heavy statements carry,
/// so that reductions stay vertical. Then come the last axes of what is computed or loaded, and no axis at all.
std::vector<VectorAxis> vector_axes(const Simulator& model);

}  // namespace napkin
