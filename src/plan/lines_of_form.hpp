#pragma once
// The overrides, read for the kernels of one form: a form is ranked by what it lacks of them.
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

struct LinesOfForm {
    /// Kernels that lines name and the form lacks weigh more than lines that cannot be read for kernels that it has.
    /// Lines of other forms' kernels count alike in each form of the same equations.
    double mismatch = 0;
    std::vector<ScheduleItem> readable = {};
};
LinesOfForm lines_of_form(const Derived& form, const Extents& extents, const std::vector<ScheduleItem>& by_user);

/// Whether the lines leave nothing open that a printed schedule of the form's only kernel says.
bool say_all(const std::vector<ScheduleItem>& lines, const Derived& form, const Extents& extents);

/// The lines for all kernels, and those that name the form's only kernel, or one that its parts make.
std::vector<ScheduleItem> lines_for(const Derived& form, std::vector<ScheduleItem> by_user);

}  // namespace napkin
