#pragma once
// A plan as text and back, without a search: what was chosen, with its reasons and the simulated times. All else is
// computed again.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/parts.hpp"
#include "plan/plan.hpp"

namespace napkin {

/// What the search over forms and schedules came to.
struct ChosenPlan {
    Derived derived;  ///< with the alternatives that are planned
    Plan plan;
    std::vector<std::string> notes;  ///< what the user should know of the choices, a sentence each
};

std::string to_text(const ChosenPlan& chosen);

/// The form whose kernels a plan has. Nothing where the derived one cannot be changed so.
std::optional<Cut> changed_form(const Derived& derived, const Extents& extents, const Machine& machine,
                                const FormChange& change);

/// Reads what to_text wrote for a derivation of the same diagram, with the same extents, machine and overrides (of the
/// diagram and the file). Nothing where the text is no such thing, or a rule speaks against it. Ids and numbers are
/// checked before they are used.
std::optional<ChosenPlan> recall(const std::string& text, const Derived& derived, const Extents& extents,
                                 const Machine& machine, const std::shared_ptr<const Source>& file);

}  // namespace napkin
