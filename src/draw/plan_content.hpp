#pragma once
// The plan as part of a page, whether the page is written for the setting, its grid has it, or its sliders choose it.
#include <vector>

#include "draw/figures.hpp"
#include "draw/html.hpp"

namespace napkin::draw {

/// Every kernel's choices with their reasons, what is expected and the whole schedule, then the notes; or why there is
/// no plan.
std::vector<svg::Element> plan_content(const Figures& figures);

}  // namespace napkin::draw
