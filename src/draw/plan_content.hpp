#pragma once
// The plan as part of a page: of the setting that the page is written for, and, in the core, of those that its sliders
// choose.
#include <string>
#include <string_view>
#include <vector>

#include "draw/figures.hpp"
#include "draw/html.hpp"
#include "plan/plan.hpp"
#include "support/result.hpp"

namespace napkin::draw {

/// Every kernel's choices with their reasons, what is predicted and the whole schedule; then the notes, and on a GPU
/// the tables and the overlap of the plan.
std::vector<svg::Element> plan_content(const Plan& plan, const Machine& machine, const std::vector<std::string>& notes);

/// The note of a plan that leaves out the schedule's file. `why`: what is wrong with it as a kernel's.
std::string not_a_kernels_schedule(std::string_view why);

struct SettingPlan {
    Machine machine;
    Plan plan;
    std::vector<std::string> notes;
};

/// The plan of `napkin plan`, but that no assembler is asked for its report. A schedule that is none of a kernel's, as
/// those of the paper's hierarchy, is left out, and a note says so. Errors: those of figures_for and of choose_plan.
Result<SettingPlan> plan_for(const FiguresRequest& request);

/// What `napkin_plan` answers: {"figures": {"kernels": [{name, seconds, transfers_values, memory_values, schedule}]},
/// "fragments": {"plan-content": HTML}}, or {"errors": [text]}.
std::string plan_answer(const std::string& request);

}  // namespace napkin::draw
