#pragma once
// Which of the alternatives that the calculus offers is the fastest on a machine: each region by itself, by the time that the model
// predicts for its kernels.
#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"

namespace napkin {

/// The derivation with the alternatives of least predicted time; the earlier one where they differ by less than the model is worth.
/// Of alternatives whose kernels lack what lines of theirs by hand name, none is taken while there is another.
/// Pre: `extents` binds derived.diagram.
Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_hand = {});
/// The same for one plan, which has time for it: where the matrix unit of a GPU may round what the model of forms multiplies as it is, the whole fold
/// is planned beside the form that the model finds, and the faster one is taken.
Derived choose_form_by_plans(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& by_hand = {});

}  // namespace napkin
