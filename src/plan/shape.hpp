#pragma once
// How code fills the vector unit: the axis whose neighbours share a vector, and the block of accumulators that registers hold.
#include <optional>
#include <string>
#include <vector>

#include "plan/predict.hpp"

namespace napkin {

struct ShapeChoice {
    VectorShape shape;
    bool vertical = false;  ///< no reduction runs across the lanes of a vector
    std::string axis_reason, rows_reason, vectors_reason;
};

/// What the user fixed; the axis may be -1 for scalar code.
struct ShapeByHand {
    std::optional<AxisId> axis;
    std::optional<std::int64_t> rows, vectors;
};

/// Candidates for the vector axis, never none: the grouped axes that every state and the targets of all heavy statements carry, so
/// that reductions stay vertical; the last axes of what is computed or loaded, and -1, where every statement goes its own way, unless
/// they are far slower. Each
/// with its block: the narrowest within 1% of the fewest clocks, among those whose accumulators, one row of vectors and a broadcast leave an eighth of
/// the registers free.
std::vector<ShapeChoice> shape_candidates(const KernelModel& model, const ShapeByHand& by_hand = {});

}  // namespace napkin
