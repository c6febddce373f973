#pragma once
// A plan's schedules at other sizes than those it was made for. Nothing is searched: this takes milliseconds.
#include <optional>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/plan.hpp"

namespace napkin {

/// The same form, tiles, atoms, places and roles; as many CTAs or threads as the other tiles need. None where some
/// schedule breaks a rule at these sizes, or would cut a stream into more parts than it has K blocks. Times are those
/// of the plan that is given. Pre: `derived` is the form that was planned, without a schedule file.
std::optional<Plan> at_other_sizes(const Plan& plan, const Derived& derived, const Extents& extents, const Machine& machine);

}  // namespace napkin
