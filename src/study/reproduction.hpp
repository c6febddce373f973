#pragma once
// A document's figures as rows of data: what it says, where, and which queries of the model compute the same figure.
// docs/reproduction.toml holds them. Its head explains how its keys are written.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algebra/size.hpp"
#include "support/json.hpp"
#include "support/result.hpp"

namespace napkin {

/// A text of the file with its place.
struct PlacedText {
    std::string text;
    SourceRange range;
};

/// How a computed figure is compared with the source's: as numbers within the rounding of what is printed, as size
/// expressions, or as texts.
enum class Closeness : std::uint8_t { number, formula, text };

struct ReproductionRow {
    std::string document, figure;
    /// Expressions over the queries' results (src/study/reproduction_value.hpp); none: napkin does not compute it.
    std::vector<PlacedText> values;
    std::vector<PlacedText> expected;  ///< one for each value, as the source prints it; no expression over queries
    Closeness comparison = Closeness::number;
    /// What is put in the place of a symbol, a size expression, or of words of a text.
    std::map<std::string, std::string> at;
    std::string unit;
    std::string input;  ///< what the row rests on that is typed in and not derived
    std::string why;    ///< why napkin computes another figure or none; empty where they should agree
    SourceRange range;
};

struct Reproduction {
    std::map<std::string, std::string> documents;  ///< short name → authors, title, number
    std::map<std::string, PlacedText> queries;     ///< name → command line without the program's name
    std::vector<ReproductionRow> rows;
};

/// Errors, each with line and key: bad-toml, unknown-key, missing-key, bad-value, bad-expression, unknown-query,
/// unused-query.
Result<Reproduction> read_reproduction(const std::shared_ptr<const Source>& text);

/// Answers a query: the JSON that its command line prints.
using Query = std::function<Result<nlohmann::json>(const PlacedText&)>;

struct RowOutcome {
    std::string computed;
    std::optional<bool> agrees;  ///< nothing where the row is not computed
};

/// The last but one column: "yes", "no", "not computed".
std::string verdict(const RowOutcome& outcome);
/// The source's figures as a row has them, with their unit.
std::string source_figure(const ReproductionRow& row);

/// Each query is asked once. Errors: those of the queries, no-such-value (an expression names what no result has),
/// bad-expression.
Result<std::vector<RowOutcome>> reproduce(const Reproduction& reproduction, const Query& query);

/// Rows that agree and have a reason why they do not, and rows that do not agree and have none.
std::vector<std::size_t> surprises(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes);

/// A table a document in Markdown, with the reasons under each, and the queries at the end.
std::string to_markdown(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes);

}  // namespace napkin
