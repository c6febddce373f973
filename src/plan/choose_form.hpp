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

}  // namespace napkin
