#pragma once
// The figures of an outcome, each once: columns of rankings and sweeps, and rows of comparisons.
#include "report/report.hpp"
#include "study/subject.hpp"

namespace napkin {

/// Without figures an outcome has an error, {"code", "message"}.
const std::vector<report::ColumnOf<Outcome>>& outcome_columns();

/// The columns of an outcome behind those that a table has. `at`: the outcome's path in a row. `label`: before the
/// names in CSV. Not `shown`: for programs alone.
void add_columns(report::Table& table, const std::string& at = "", const std::string& label = "", bool shown = true);
void add_values(std::vector<report::Value>& row, const Outcome& outcome);

/// "least time: h200 (rates measured)" for each criterion that someone has figures for. Programs find the name of the
/// best at `path`.
void add_best(report::Section& out, const std::string& path, const std::vector<Outcome>& outcomes,
              const std::vector<std::string>& labels, const std::vector<std::string>& names);
/// "equal", the position's name, or nothing.
report::Json winner_json(int winner, const std::vector<std::string>& names);
/// The same for people.
std::string winner_text(int winner, const std::vector<std::string>& labels);
/// {"q": 4096, "x": 4096}
report::Json sizes_json(const std::vector<TiedAxes>& tied);
std::vector<std::string> labels_of(const std::vector<Subject>& subjects);

}  // namespace napkin
