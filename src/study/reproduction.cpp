#include "study/reproduction.hpp"

#include <fmt/format.h>

#include <cmath>

#include "study/parse_size.hpp"
#include "study/reproduction_value.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// A difference by rounding in the last place of a double is none.
bool equal(double a, double b) { return std::fabs(a - b) <= 1e-9 * std::max(std::fabs(a), std::fabs(b)); }

/// 2,147,483,648.
std::string whole_text(double value) {
    std::string digits = fmt::format("{:.0f}", std::fabs(value));
    for (std::size_t i = digits.size(); i > 3 && digits.size() > 4; i -= 3) digits.insert(i - 3, ",");
    return (value < 0 ? "-" : "") + digits;
}

/// One digit more than the source prints and at least four in all, without zeros at the end; six where the source
/// prints a formula.
std::string number_text(double value, const std::optional<PrintedFigure>& as) {
    if (value == std::floor(value) && std::fabs(value) < 1e15) return whole_text(value);
    if (!as || as->most < 1e-3) return fmt::format("{:.6g}", value);
    const int decimals = std::max(as->decimals + 1, 3 - static_cast<int>(std::floor(std::log10(std::fabs(value)))));
    std::string text = fmt::format("{:.{}f}", value, decimals);
    text.erase(text.find_last_not_of('0') + 1);
    return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
}

std::string with_unit(const std::string& text, const ReproductionRow& row) {
    return text + (row.unit.empty() ? "" : " " + row.unit);
}

class RowJudge {
public:
    RowJudge(const ReproductionRow& row, const Results& results) : row_(row), results_(results) {}

    Result<RowOutcome> run() {
        if (row_.values.empty()) return RowOutcome{"", std::nullopt};
        std::vector<std::string> texts;
        bool agrees = true;
        for (std::size_t i = 0; i < row_.values.size(); ++i) {
            const bool same = row_.comparison == Closeness::formula ? compare_formula(i, texts)
                              : row_.comparison == Closeness::text  ? compare_text(i, texts)
                                                                    : compare_number(i, texts);
            agrees = agrees && same;
        }
        if (!errors_.empty()) return errors_;
        return RowOutcome{with_unit(join(texts, ", "), row_), agrees};
    }

private:
    bool compare_formula(std::size_t i, std::vector<std::string>& texts) {
        SymbolTable symbols;
        const auto found = formula_of(row_.values[i].text, results_, symbols);
        if (!take(found, row_.values[i])) return false;
        Size size = std::get<Size>(found);
        // The reader has seen that these are size expressions.
        for (const auto& [symbol, by] : row_.at)
            size = size.substitute(symbols(symbol), std::get<Size>(parse_size(by, symbols)));
        texts.push_back(to_string(size, symbols.names()));
        return size == std::get<Size>(parse_size(row_.expected[i].text, symbols));
    }

    bool compare_text(std::size_t i, std::vector<std::string>& texts) {
        const auto found = text_of(row_.values[i].text, results_);
        if (!take(found, row_.values[i])) return false;
        std::string text = std::get<std::string>(found);
        // From the last key on, so that a word goes before its own beginning.
        for (auto word = row_.at.rbegin(); word != row_.at.rend(); ++word)
            for (std::size_t at = 0; (at = text.find(word->first, at)) != std::string::npos; at += word->second.size())
                text.replace(at, word->first.size(), word->second);
        texts.push_back(text);
        return text == row_.expected[i].text;
    }

    bool compare_number(std::size_t i, std::vector<std::string>& texts) {
        const auto found = number_of(row_.values[i].text, results_);
        const auto printed = printed_figure(row_.expected[i].text);
        const auto said = printed ? printed->least : number_of(row_.expected[i].text, {});
        if (!take(found, row_.values[i]) || !take(said, row_.expected[i])) return false;
        const double value = std::get<double>(found);
        texts.push_back(number_text(value, printed));
        if (!printed) return equal(value, std::get<double>(said));
        return (value >= printed->least && value <= printed->most) || equal(value, printed->least) ||
               equal(value, printed->most);
    }

    template <class T>
    bool take(const std::variant<T, ValueError>& value, const PlacedText& text) {
        const auto* error = std::get_if<ValueError>(&value);
        if (error == nullptr) return true;
        SourceRange range = text.range;
        range.begin += static_cast<std::uint32_t>(error->at);
        range.end = range.begin + static_cast<std::uint32_t>(error->length);
        errors_.push_back({error->code, range, error->message, error->expected, error->hint, {}, ExitCode::bad_input});
        return false;
    }

    const ReproductionRow& row_;
    const Results& results_;
    std::vector<Diagnostic> errors_;
};

/// A cell of a Markdown table.
std::string cell(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '|' || c == '*' || c == '_' || c == '<') out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

/// The names of the queries that the row's values ask.
std::string asked(const ReproductionRow& row) {
    std::vector<std::string> names;
    for (const PlacedText& value : row.values) {
        const auto found = names_in(value.text);
        // The reader has seen that these are expressions.
        for (const ResultName& name : std::get<std::vector<ResultName>>(found))
            if (!contains(names, cell(name.name))) names.push_back(cell(name.name));
    }
    return join(names, ", ");
}

/// A document's table, and under it the reasons of the rows that do not agree, by number.
std::string document_section(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes,
                             const std::string& document) {
    std::string out = fmt::format("\n## {}\n\n{}\n\n", document, reproduction.documents.at(document)), reasons;
    out += "| figure | source | napkin | agrees | query |\n|---|---|---|---|---|\n";
    int number = 0;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const ReproductionRow& row = reproduction.rows[i];
        if (row.document != document) continue;
        std::string says = verdict(outcomes[i]);
        if (!row.input.empty()) says += ", given " + row.input;
        if (!row.why.empty()) {
            says += fmt::format(" ({})", ++number);
            reasons += fmt::format("{}. {}\n", number, cell(row.why));
        }
        out += fmt::format("| {} | {} | {} | {} | {} |\n", cell(row.figure), cell(source_figure(row)),
                           cell(outcomes[i].computed), cell(says), asked(row));
    }
    return out + (reasons.empty() ? "" : "\n" + reasons);
}

}  // namespace

std::string verdict(const RowOutcome& outcome) {
    return !outcome.agrees ? "not computed" : *outcome.agrees ? "yes" : "no";
}

std::string source_figure(const ReproductionRow& row) {
    return with_unit(join(mapped<std::string>(row.expected, [](const PlacedText& text) { return text.text; }), ", "), row);
}

Result<std::vector<RowOutcome>> reproduce(const Reproduction& reproduction, const Query& query) {
    Results results;
    std::vector<Diagnostic> errors;
    const auto collect = [&](const std::vector<Diagnostic>& more) { append(errors, more); };
    for (const auto& [name, command] : reproduction.queries) {
        auto result = query(command);
        if (result)
            results[name] = std::move(result).value();
        else
            collect(result.errors());
    }
    if (!errors.empty()) return errors;
    std::vector<RowOutcome> outcomes;
    for (const ReproductionRow& row : reproduction.rows) {
        const auto outcome = RowJudge(row, results).run();
        if (outcome)
            outcomes.push_back(*outcome);
        else
            collect(outcome.errors());
    }
    if (!errors.empty()) return errors;
    return outcomes;
}

std::vector<std::size_t> surprises(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (outcomes[i].agrees.value_or(false) != reproduction.rows[i].why.empty()) rows.push_back(i);
    return rows;
}

std::string to_markdown(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes) {
    std::size_t agreeing = 0, given = 0, computed = 0;
    std::vector<std::string> documents;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const ReproductionRow& row = reproduction.rows[i];
        const bool agrees = outcomes[i].agrees.value_or(false);
        computed += outcomes[i].agrees ? 1 : 0;
        agreeing += agrees ? 1 : 0;
        given += agrees && !row.input.empty() ? 1 : 0;
        if (!contains(documents, row.document)) documents.push_back(row.document);
    }
    std::string out = fmt::format(
        "# What the sources say, and what napkin computes\n\n"
        "`napkin reproduce --output docs/reproduction.md` writes this page from "
        "[reproduction.toml](reproduction.toml), "
        "and a test compares them.\n\n"
        "- A number agrees within half a unit of the last digit that the source prints. Behind ~ (about), zeros at the "
        "end of a whole number\n"
        "  are no digits: ~200 is 150 to 250. A range a–b holds what its ends hold. A fraction, a formula or a text "
        "agrees exactly.\n"
        "- *given X*: the figure, or what it rests on, is typed in as X. Napkin reads it back or goes on from it.\n"
        "- *no* and *not computed* have their reasons under the table.\n"
        "- Rates and capacities are those of the files in [machines](../machines), each with its source there.\n\n"
        "{} rows: {} agree, {} of them given an input; {} do not agree; {} are not computed.\n",
        outcomes.size(), agreeing, given, computed - agreeing, outcomes.size() - computed);
    for (const std::string& document : documents) out += document_section(reproduction, outcomes, document);
    out +=
        "\n## Queries\n\nEach is a record of bench/results, or a command line of `napkin`, run with `--json` from "
        "the repository's root.\n\n";
    for (const auto& [name, command] : reproduction.queries)
        out += fmt::format("- {}: `{}`\n", cell(name), command.text);
    return out;
}

}  // namespace napkin
