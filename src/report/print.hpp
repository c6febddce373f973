#pragma once
// Printers of reports: each prints any tree.
#include <string>

#include "report/report.hpp"

namespace napkin::report {

/// Lines for people. `color`: titles are bold on a terminal.
std::string to_text(const Section& section, bool color = false);
/// An object.
Json to_json(const Section& section);
/// A column of a table that people read.
struct ReadColumn {
    std::size_t index = 0;
    bool is_number = false;
};
std::vector<ReadColumn> read_columns(const Table& table);
/// "bound 12 ms, expected 14 ms"; empty where there is nothing to read.
std::string line_text(const Figures& figures);

/// The first table that programs get, with a line of names; a cell is empty where there is no figure.
std::string to_csv(const Section& section);

}  // namespace napkin::report
