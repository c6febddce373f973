#pragma once
// Whether a kernel's stream is cut into parts (derive/parts.hpp), and into how many: by hand, or where groups leave
// cores without work and the simulator finds parts and their merge faster than the whole.
#include <functional>
#include <optional>
#include <vector>

#include "plan/choose.hpp"
#include "plan/overrides.hpp"

namespace napkin {

/// Seconds of all kernels. Each one is started, also one that runs on a single core, whose own time has no waking of
/// others in it.
double seconds_with_starts(const Plan& plan, const Machine& machine);

/// Whether the kernel's stream in parts may take less than `enough` seconds: not all cores are busy, and an even share
/// for each, with the starts of the parts and of their merge, takes less.
bool may_gain_by_parts(const KernelPlan& kernel, const Machine& machine, std::int64_t cores, double enough);

/// Plans every kernel of a form by itself.
using Planner = std::function<Result<Plan>(const Derived& form, const Extents& extents, const PlanOptions& options)>;

/// What the user says of each kernel; nothing where it is open. Of the text, options and a file, the items of which
/// stand together, the later one goes before the earlier. Pre: checked_overrides holds the splits of all kernels for
/// legal. Errors: no-split (why the stream cannot be cut), duplicate-schedule, and those of checked_overrides for a
/// kernel's own.
Result<std::vector<std::optional<Choice>>> parts_by_user(const Derived& derived, const Extents& extents,
                                                         const std::vector<ScheduleItem>& items);

/// Whether the kernel's parts, or what merges them, have that name.
bool is_of_parts(const Derived& derived, std::size_t kernel, const std::string& name);

/// A form whose streams are cut, and of each of its kernels which one of the form before it stands for.
struct Cut {
    Derived form;
    Extents extents;
    std::vector<std::size_t> whole;
};
/// Into so many parts by kernel; what cannot be cut stays whole.
Cut cut_streams(const Derived& derived, const Extents& extents, const std::vector<std::int64_t>& parts);

/// The plan of the form with its streams cut. `cores`: that may work at a time.
Result<Plan> plan_in_parts(const Derived& derived, const Extents& extents, const Machine& machine, std::int64_t cores,
                           const std::vector<std::optional<Choice>>& by_user, const PlanOptions& options,
                           const Planner& planner);

}  // namespace napkin
