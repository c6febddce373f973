#pragma once
// Chooses whether a kernel's stream is split into parts (derive/parts.hpp), and into how many. An override decides.
// Otherwise groups must leave cores without work, and the simulator must find parts and their merge faster than the
// whole.
#include <functional>
#include <optional>
#include <vector>

#include "plan/choose.hpp"
#include "plan/overrides.hpp"

namespace napkin {

/// Whether the kernel's stream in parts may take less than `enough` seconds. Not all cores are busy then, and an even
/// share for each takes less, with the starts of the parts and of their merge.
bool may_gain_by_parts(const KernelPlan& kernel, const Machine& machine, std::int64_t cores, double enough);

/// Plans every kernel of a form by itself.
using Planner = std::function<Result<Plan>(const Derived& form, const Extents& extents, const PlanOptions& options)>;

/// The user's split of each kernel; nothing where it is open. The items of the text, of the options and of a file each
/// stand together, and a later place takes precedence. Pre: checked_overrides accepts the splits of all kernels.
/// Errors: no-split (why the stream cannot be cut), duplicate-schedule, and those of checked_overrides for a kernel's
/// own.
Result<std::vector<std::optional<Choice>>> parts_by_user(const Derived& derived, const Extents& extents,
                                                         const std::vector<ScheduleItem>& items);

/// Whether the kernel's parts, or their merge, have that name.
bool is_of_parts(const Derived& derived, std::size_t kernel, const std::string& name);

/// A form whose streams are split. For each of its kernels, `whole` is the kernel of the form before that it stands
/// for.
struct Cut {
    Derived form;
    Extents extents;
    std::vector<std::size_t> whole;
};
/// Splits the stream of each kernel into so many parts. What cannot be split stays whole.
Cut cut_streams(const Derived& derived, const Extents& extents, const std::vector<std::int64_t>& parts);

/// The plan of the form with its streams split. `cores`: those that may work at a time.
Result<Plan> plan_in_parts(const Derived& derived, const Extents& extents, const Machine& machine, std::int64_t cores,
                           const std::vector<std::optional<Choice>>& by_user, const PlanOptions& options,
                           const Planner& planner);

}  // namespace napkin
