#pragma once
// Chooses the fastest alternatives that the calculus offers on a machine, each region by itself, by the time that the
// model predicts for its kernels.
#include <memory>
#include <vector>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/estimates.hpp"

namespace napkin {

/// The derivation with the alternatives of least predicted time. On a CPU they are found by plans, as
/// choose_form_by_plans does; on a GPU by the closed form, which takes less time. Overrides come first: only
/// alternatives that lack the fewest of the named kernels are compared. Among these, only those for which the most
/// lines can be read are. The earlier one stays where they differ by less than the model's accuracy. Without overrides,
/// what is found out of candidates goes to `ratings`, as the plan of the chosen form asks for much of it again.
/// Pre: `extents` binds derived.diagram.
Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_user = {}, const std::shared_ptr<Estimates>& ratings = {});
/// The same for one plan, which has more time: on a CPU, and on a GPU that CUDA programs, every kernel of a form is
/// planned (form_search.hpp). With overrides, the plans of the form that choose_form finds and of the calculus' own
/// first choice are compared.
Derived choose_form_by_plans(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& by_user = {}, const std::shared_ptr<Estimates>& ratings = {});

}  // namespace napkin
