#pragma once
// The form of a derivation that is predicted to be the fastest on a machine. Each way to gather its equations into
// regions is searched (gatherings_of), and each region by itself. Its alternatives say which equations are one kernel;
// each kernel may stream any axis that its equations reduce.
//
// Kernels are planned one by one, and each only once. Until it is planned, a kernel counts with a lower bound of its
// time. The next one is always of the alternative with the least sum. So an alternative with the least sum whose
// kernels are all planned is the fastest, and what is left need not be planned.
#include <cstdint>
#include <memory>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/estimates.hpp"

namespace napkin {

/// Where the times of kernels come from. The closed form takes less time to find one, and compares the derivation's own
/// alternatives alone, each with its own streams. A CPU's times are always of plans, and those of a GPU that CUDA does
/// not program always of the closed form.
enum class FormTimes : std::uint8_t { of_plans, of_closed_form };

/// Overrides come first: forms are compared that lack the fewest of the kernels that lines name, and of which the most
/// lines can be read. Among them the time decides, on a GPU that of quick plans (PlanOptions::quick). `by_user` are all
/// overrides, also the diagram's own. Without overrides, what is found out of candidates goes to `ratings`, as the plan
/// of the chosen form asks for much of it again. Pre: `extents` binds derived.diagram.
Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_user = {}, const std::shared_ptr<Estimates>& ratings = {},
                    FormTimes times = FormTimes::of_plans);

}  // namespace napkin
