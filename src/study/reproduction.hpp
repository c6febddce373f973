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

/// How a computed figure is compared with the document's.
enum class Closeness : std::uint8_t { exact, rounded, within, formula, text };

struct ReproductionRow {
    std::string document, where, says;
    std::vector<PlacedText> values;  ///< expressions over the queries' results: src/study/reproduction_value.hpp
    /// one for each value: a number or an expression; a size expression, or a text, where compared as such
    std::vector<PlacedText> expected;
    Closeness comparison = Closeness::exact;
    double tolerance = 0;                   ///< relative, for Closeness::within
    std::map<std::string, std::string> at;  ///< the size expression that stands for a symbol of the computed formulas
    std::string unit, note;
    bool read_back = false;  ///< what a machine, an example or the library states itself: nothing is computed
    std::string disagrees;   ///< why the document's figure is not the computed one; empty where they should agree
    SourceRange range;
};

struct Reproduction {
    std::map<std::string, std::string> documents;  ///< short name → full title
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
    bool agrees = false;
    std::string how;  ///< the last column: "yes, as rounded", "no: …"
};

/// Each query is asked once. Errors: those of the queries, no-such-value (an expression names what no result has),
/// bad-expression.
Result<std::vector<RowOutcome>> reproduce(const Reproduction& reproduction, const Query& query);

/// Rows that agree though the file says that they do not, or the other way round.
std::vector<std::size_t> surprises(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes);

/// The table in Markdown, with the queries under it.
std::string to_markdown(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes);

}  // namespace napkin
