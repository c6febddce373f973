#pragma once
// The plan: every degree of freedom of a derived diagram on one machine, as plain data with a reason beside each value.
// Printed as a table (to_string) and parsed back (parse_plan).
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost/exact.hpp"
#include "diagram/diagram.hpp"
#include "support/result.hpp"

namespace napkin {

/// A chosen value and why; `by_hand` when the user fixed it.
struct Choice {
    std::int64_t value = 0;
    std::string reason;
    bool by_hand = false;
    friend bool operator==(const Choice&, const Choice&) = default;
};

struct KernelPlan {
    std::string kernel;
    std::map<std::string, Choice> group;  ///< g_a by axis name; an axis of Kernel::group_axes that is missing is not grouped
    std::map<std::string, Choice> stream;  ///< s_a by axis name, for the axis of every loop
    Choice threads{1, "", false};
    // CPU code: the axis whose neighbouring values fill a vector ("" when none does), how many vectors (block_vectors) and how
    // many rows of another axis (block_rows) a register block holds.
    std::string vector_axis, vector_axis_reason;
    Choice block_rows{1, "", false}, block_vectors{1, "", false};
    // Predictions for the extents planned for.
    double transfers_values = 0;  ///< H, values
    double memory_values = 0;     ///< M, values a core
    double predicted_seconds = 0;
    std::string bound_by;  ///< the unit or pipe that binds
    friend bool operator==(const KernelPlan&, const KernelPlan&) = default;
};

struct Plan {
    std::string machine;
    std::vector<KernelPlan> kernels;  ///< one for each kernel of the derived diagram, in order
    friend bool operator==(const Plan&, const Plan&) = default;
};

/// The sizes that a plan gives to one kernel: group sizes for its group axes, stream sizes for its loops, clamped to the extents.
TileSizes tile_sizes(const Derived& derived, const Kernel& kernel, const Extents& extents, const KernelPlan& plan);

/// The counts under the plan: those of the tile interpreter, exactly.
ExactCosts exact_costs(const Derived& derived, const Kernel& kernel, const Extents& extents, const KernelPlan& plan);

/// One aligned line for each choice, with its reason.
std::string to_string(const Plan& plan);

/// Reads to_string's text back to an equal plan. Errors: bad-plan, with the line and what was expected there.
Result<Plan> parse_plan(const std::string& text);

}  // namespace napkin
