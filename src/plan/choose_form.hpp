#pragma once
// Which of the alternatives that the calculus offers is the fastest on a machine: each region by itself, by the time
// that the model predicts for its kernels.
#include <memory>
#include <vector>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/estimates.hpp"

namespace napkin {

/// The derivation with the alternatives of least predicted time; the earlier one where they differ by less than the
/// model is worth. It looks only at the alternatives that lack fewest of the kernels that lines by hand name, and among
/// them at those that most lines can be read for. On a CPU, where quick searches find the whole fold about as fast as
/// the form that they take, whole ones decide between the two. What is found out of candidates goes to `ratings` where
/// nothing is by hand: the plan of the form that is taken asks for much of it again. Pre: `extents` binds
/// derived.diagram.
Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_user = {}, const std::shared_ptr<Estimates>& ratings = {});
/// The same for one plan, which has time for it: where the matrix unit of a GPU may round what the model of forms
/// multiplies as it is, the whole fold is planned beside the form that the model finds and those that it finds little
/// slower, and the fastest one is taken.
Derived choose_form_by_plans(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& by_user = {}, const std::shared_ptr<Estimates>& ratings = {});

}  // namespace napkin
