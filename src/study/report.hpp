#pragma once
// The answers to questions for readers: as text, as JSON, and as CSV.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost/cost_figures.hpp"
#include "study/compare.hpp"
#include "study/ranking.hpp"
#include "study/sweep.hpp"

namespace napkin {

std::string to_text(const CostStudy& study);
nlohmann::json to_json(const CostStudy& study);

std::string to_text(const Comparison& comparison);
nlohmann::json to_json(const Comparison& comparison);

std::string to_text(const Ranking& ranking);
std::string to_csv(const Ranking& ranking);
nlohmann::json to_json(const Ranking& ranking);

std::string to_text(const Sweep& sweep);
/// One line a point: sizes, then the figures of every subject; with several subjects, their labels before the figures'
/// names.
std::string to_csv(const Sweep& sweep);
nlohmann::json to_json(const Sweep& sweep);

/// Every figure, or {"error": {code, message}}.
nlohmann::json figures_json(const Outcome& outcome);
/// The same as cells of a CSV file; empty where there is no figure.
inline constexpr std::string_view csv_columns[] = {
    "machine",         "seconds",         "is_planned", "bound_s",       "bound_by",
    "kernels",         "transfers_bytes", "flops",      "flop_per_byte", "peak_share",
    "footprint_bytes", "energy_j",        "price_usd",  "rates",         "error"};
std::string csv_cells(const Outcome& outcome);
std::string csv_quoted(const std::string& text);

/// "rates: h200 measured, b200 1 of 5 measured" and a line's end, where the outcomes are of several machines; else
/// empty.
std::string rates_text(const std::vector<Outcome>& outcomes);

/// What a study's kernels are printed with; points into it.
std::optional<CostNumbers> numbers_of(const CostStudy& study);

}  // namespace napkin
