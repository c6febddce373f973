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

/// The lines of all kernels or of one, checked. The field that a line fixes is a row of schedule_fields.
class Overrides {
public:
    /// By the axis that the line names; -1: it names none.
    using Lines = std::map<AxisId, ScheduleItem>;

    [[nodiscard]] const Lines& of(ChoiceKind kind) const;
    [[nodiscard]] bool fixes(ChoiceKind kind) const { return !of(kind).empty(); }
    [[nodiscard]] bool fixes(ChoiceKind kind, AxisId axis) const { return of(kind).contains(axis); }
    /// The line of a field that has one value, and the axis that it names. Null, -1: it is open.
    [[nodiscard]] const ScheduleItem* line(ChoiceKind kind) const;
    [[nodiscard]] AxisId axis(ChoiceKind kind) const;
    [[nodiscard]] std::int64_t value(ChoiceKind kind, std::int64_t otherwise) const;

    void take(const ScheduleItem& item, AxisId axis = -1);
    void drop(ChoiceKind kind) { lines_.erase(kind); }
    /// What `over` fixes is as it says.
    void take_over(const Overrides& over);

private:
    std::map<ChoiceKind, Lines> lines_;
};

/// The axes along which the kernel's statements compute or reduce.
std::vector<AxisId> axes_of(const Diagram& diagram, const Kernel& kernel);

/// What the diagram itself says of its schedule.
const std::vector<ScheduleItem>& own_schedule(const Derived& derived);
/// All overrides: the diagram's schedule, then the items beside it, then those of the file, where there is one. Later
/// ones take precedence: what earlier ones say of the same choice is left out. Errors: those of parse_schedule_file.
Result<std::vector<ScheduleItem>> all_overrides(const Derived& derived, const std::vector<ScheduleItem>& beside,
                                                const std::shared_ptr<const Source>& file);

/// All overrides in a kernel's words: a line `warpgroup q 64` is also the axis M and, beside a group, its warps, where
/// no line says these. Errors: as all_overrides.
Result<std::vector<ScheduleItem>> kernel_overrides(const Derived& derived, const std::vector<ScheduleItem>& beside,
                                                   const std::shared_ptr<const Source>& file);

/// The items without a kernel's name.
std::vector<ScheduleItem> of_all_kernels(std::vector<ScheduleItem> items);

/// Later items override earlier ones of the same kind and axis. Kinds that other passes own are let through.
/// Errors: unknown-axis (nearest names), not-groupable, not-streamed and no-subloop (why, and what is),
/// size-out-of-range (nearest legal size), no-warpgroup and only-of-steps.
Result<Overrides> checked_overrides(const Derived& derived, const Extents& extents, const std::vector<ScheduleItem>& items);

}  // namespace napkin
