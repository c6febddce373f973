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

/// The derivation with the alternatives of least predicted time. The earlier one where they differ by less than the
/// model's accuracy. Overrides come first: only alternatives that lack the fewest of the named kernels are compared.
/// Among these, only those for which the most lines can be read are. On a CPU, quick searches may find the whole fold
/// about as fast as the form that they take. Full searches then decide between the two. Without overrides, what is
/// found out of candidates goes to `ratings`, as the plan of the chosen form asks for much of it again.
/// Pre: `extents` binds derived.diagram.
Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_user = {}, const std::shared_ptr<Estimates>& ratings = {});
/// The same for one plan, which has more time: on a GPU that CUDA programs, every kernel of a form is planned
/// (form_search.hpp). With overrides, the plans of the form that choose_form finds and of the calculus' own first
/// choice are compared.
Derived choose_form_by_plans(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& by_user = {}, const std::shared_ptr<Estimates>& ratings = {});

}  // namespace napkin
