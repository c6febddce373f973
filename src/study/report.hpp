#pragma once
// The answers to questions as reports.
#include "cost/cost_figures.hpp"
#include "report/print.hpp"
#include "study/compare.hpp"
#include "study/ranking.hpp"
#include "study/sweep.hpp"

namespace napkin {

report::Section report_of(const CostStudy& study);
report::Section report_of(const Comparison& comparison);
report::Section report_of(const Ranking& ranking);
/// A row for each point: sizes, then the figures of every subject; with several subjects, their labels before the
/// figures' names.
report::Section report_of(const Sweep& sweep);

/// "rates: h200 measured, b200 1 of 5 measured" and a line's end, where the outcomes are of several machines; else
/// empty.
std::string rates_text(const std::vector<Outcome>& outcomes);

/// What a study's kernels are printed with; points into it.
std::optional<CostNumbers> numbers_of(const CostStudy& study);

}  // namespace napkin
