// docs/language.md: its tables of a schedule have each word of diagram/schedule_item.hpp and no other, its values, its
// limit, and an example that parses as a line of that kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "diagram/schedule_item.hpp"
#include "support/paths.hpp"
#include "support/ranges.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

using Cells = std::vector<std::string>;

/// The rows of a document's tables between two marks, without their heads.
std::vector<Cells> rows_between(const std::string& document, const std::string& begin, const std::string& end) {
    std::ifstream file(in_sources(document));
    std::vector<Cells> rows;
    bool is_inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line == begin || line == end) is_inside = line == begin;
        if (!is_inside || !line.starts_with("| `")) continue;
        rows.emplace_back();
        for (std::size_t at = 2, next = 0; (next = line.find(" | ", at)) != std::string::npos; at = next + 3)
            rows.back().push_back(line.substr(at, next - at));
        const std::size_t last = line.rfind(" | ");
        rows.back().push_back(line.substr(last + 3, line.size() - last - 5));
    }
    return rows;
}

/// What stands between backticks.
std::vector<std::string> code_in(const std::string& cell) {
    std::vector<std::string> code;
    std::istringstream parts(cell);
    bool is_code = false;
    for (std::string part; std::getline(parts, part, '`'); is_code = !is_code)
        if (is_code) code.push_back(part);
    return code;
}

std::string line_of(const Cells& row) { return code_in(row.back()).at(0); }

/// The one item of a line, as a file has it. A form is chosen in the text alone.
ScheduleItem item_of(const std::string& line) {
    const auto source = [](std::string text) {
        return std::make_shared<const Source>(Source{"example", std::move(text)});
    };
    if (line.starts_with("form"))
        return parse_diagram(source("f(X[q]) -> Y[q]\n    Y[q] = X[q]\nschedule\n    " + line + "\n")).value().schedule.at(0);
    const auto items = parse_schedule_file(source(line + "\n"));
    if (!items) throw std::runtime_error(render(items.errors()));
    return items->at(0);
}

struct Tables {
    std::map<std::string, Cells> words;  ///< by word
    std::vector<Cells> clauses;
};
Tables tables() {
    Tables out;
    for (Cells& row : rows_between("docs/language.md", "<!-- schedule words -->", "<!-- end of schedule words -->"))
        if (row.size() == 4)
            out.clauses.push_back(std::move(row));
        else if (!out.words.emplace(code_in(row[0]).at(0), row).second)
            ADD_FAILURE() << row[0] << " has two rows";
    return out;
}

TEST(ScheduleWords, StandInTheTable) {
    const Tables documented = tables();
    std::set<std::string> words{std::string(name(ChoiceKind::machine)), std::string(name(ChoiceKind::kernel))};
    for (const ChoiceField& field : choice_fields) words.emplace(field.name);
    std::set<std::string> rows;
    for (const auto& [word, row] : documented.words) rows.insert(word);
    EXPECT_EQ(rows, words);

    for (const ChoiceField& field : choice_fields) {
        const auto row = documented.words.find(std::string(field.name));
        if (row == documented.words.end()) continue;
        const std::string& values = row->second[1];
        for (const std::string_view word : field.words)
            EXPECT_NE(values.find(fmt::format("`{}`", word)), std::string::npos) << word;
        if (field.most > 0 && field.most < limits::max_size_product) {
            EXPECT_TRUE(values.ends_with(fmt::format(" … {}", field.most))) << field.name;
        }
    }
    for (const auto& [word, row] : documented.words) EXPECT_EQ(name(item_of(line_of(row)).kind), word);
    for (const std::string_view on_gpu : {gpu_threads, gpu_rows})
        EXPECT_TRUE(contains(code_in(documented.words.at(std::string(without_alias("", on_gpu)))[2]), on_gpu)) << on_gpu;
}

TEST(ScheduleWords, ClausesStandInTheTable) {
    std::set<std::string> expected, rows;
    for (const ClauseField& field : clause_fields) expected.insert(fmt::format("{} {}", name(field.of), field.word));
    for (const Cells& row : tables().clauses) {
        const std::string line = code_in(row[0]).at(0);
        const ScheduleItem item = item_of(line_of(row));
        EXPECT_EQ(name(item.kind), line);
        for (const std::string& clause : code_in(row[1])) rows.insert(line + " " + clause);
        const std::vector<std::string> named = code_in(row[1]);
        EXPECT_TRUE(any_of(item.clauses, [&](const ScheduleClause& c) { return contains(named, c.word); })) << line_of(row);
    }
    EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace napkin
