#pragma once
// What the user fixed of a plan, checked against the rules. Sizes lie within their axes, and only axes that may be
// grouped or that are streamed have them.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "support/result.hpp"

namespace napkin {

struct Overrides {
    std::map<AxisId, ScheduleItem> group, stream, subloop, split;  ///< with a value
    std::optional<ScheduleItem> threads, grid, warps, blocks, rows, vectors, vector, tensor, maximum, turns, dealing,
        cluster;
    AxisId vector_axis = -1;   ///< where `vector` is set; -1: scalar code
    AxisId cluster_axis = -1;  ///< where `cluster` is set
    AxisId mma_m_axis = -1;    ///< where `tensor` is set; -1: no statement uses the tensor cores
};

/// The axes along which the kernel's statements compute or reduce.
std::vector<AxisId> axes_of(const Diagram& diagram, const Kernel& kernel);

/// What the diagram itself says of its schedule.
const std::vector<ScheduleItem>& own_schedule(const Derived& derived);
/// All overrides: the diagram's schedule, then the items beside it, then those of the file, where there is one. Later
/// ones take precedence: what earlier ones say of the same choice is left out. Errors: those of parse_schedule_file.
Result<std::vector<ScheduleItem>> all_overrides(const Derived& derived, const std::vector<ScheduleItem>& beside,
                                                const std::shared_ptr<const Source>& file);

/// The items without a kernel's name.
std::vector<ScheduleItem> of_all_kernels(std::vector<ScheduleItem> items);

/// Later items override earlier ones of the same kind and axis. Kinds that other passes own are let through.
/// Errors: unknown-axis (nearest names), not-groupable, not-streamed and no-subloop (why, and what is),
/// size-out-of-range (nearest legal size) and only-of-steps.
Result<Overrides> checked_overrides(const Derived& derived, const Extents& extents, const std::vector<ScheduleItem>& items);

}  // namespace napkin
