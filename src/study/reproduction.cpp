#include "study/reproduction.hpp"

#include <fmt/format.h>

#include <cmath>

#include "study/parse_size.hpp"
#include "study/reproduction_value.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// A number as a document prints it: where its last digit stands.
struct Printed {
    double value = 0;
    int decimals = 0;
};

std::optional<Printed> printed(const std::string& text) {
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) return std::nullopt;
    const std::size_t point = text.find('.');
    return Printed{std::stod(text), point == std::string::npos ? 0 : static_cast<int>(text.size() - point - 1)};
}

/// A difference by rounding in the last place of a double is none.
bool equal(double a, double b) { return std::fabs(a - b) <= 1e-9 * std::max(std::fabs(a), std::fabs(b)); }

/// 2,147,483,648.
std::string whole_text(double value) {
    std::string digits = fmt::format("{:.0f}", std::fabs(value));
    for (std::size_t i = digits.size(); i > 3 && digits.size() > 4; i -= 3) digits.insert(i - 3, ",");
    return (value < 0 ? "-" : "") + digits;
}

/// As many digits more than the document prints as tell the two apart, up to three; six digits where it prints a
/// formula.
std::string number_text(double value, const std::string& expected) {
    if (value == std::floor(value) && std::fabs(value) < 1e15) return whole_text(value);
    const auto as = printed(expected);
    if (!as) return fmt::format("{:.6g}", value);
    std::string text = fmt::format("{:.{}f}", value, as->decimals);
    if (equal(value, as->value)) return text;
    for (int more = 1; more <= 3; ++more) {
        text = fmt::format("{:.{}f}", value, as->decimals + more);
        if (std::stod(text) != as->value) break;
    }
    return text;
}

class RowJudge {
public:
    RowJudge(const ReproductionRow& row, const Results& results) : row_(row), results_(results) {}

    Result<RowOutcome> run() {
        std::vector<std::string> texts;
        bool agrees = true;
        for (std::size_t i = 0; i < row_.values.size(); ++i) {
            const bool same = row_.comparison == Closeness::formula ? compare_formula(i, texts)
                              : row_.comparison == Closeness::text  ? compare_text(i, texts)
                                                                    : compare_number(i, texts);
            agrees = agrees && same;
        }
        if (!errors_.empty()) return errors_;
        RowOutcome outcome;
        outcome.computed = join(texts, ", ") + (row_.unit.empty() ? "" : " " + row_.unit);
        outcome.agrees = agrees;
        outcome.how = agrees ? how() : row_.disagrees.empty() ? "no" : "no: " + row_.disagrees;
        if (!row_.note.empty()) outcome.how += (agrees ? "; " : ". ") + row_.note;
        return outcome;
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
        texts.push_back(std::get<std::string>(found));
        return texts.back() == row_.expected[i].text;
    }

    bool compare_number(std::size_t i, std::vector<std::string>& texts) {
        const auto found = number_of(row_.values[i].text, results_), said = number_of(row_.expected[i].text, results_);
        if (!take(found, row_.values[i]) || !take(said, row_.expected[i])) return false;
        const double a = std::get<double>(found), b = std::get<double>(said);
        texts.push_back(number_text(a, row_.expected[i].text));
        if (row_.comparison == Closeness::within) {
            worst_ = std::max(worst_, std::fabs(a - b) / std::fabs(b));
            return std::fabs(a - b) <= row_.tolerance * std::fabs(b);
        }
        const auto as = printed(row_.expected[i].text);
        if (row_.comparison == Closeness::rounded && as)
            return std::fabs(a - b) <= 0.5 * std::pow(10.0, -as->decimals) * (1 + 1e-9);
        return equal(a, b);
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

    [[nodiscard]] std::string how() const {
        switch (row_.comparison) {
            case Closeness::exact:
            case Closeness::text: return "yes";
            case Closeness::rounded: return "yes, as rounded";
            case Closeness::within:
                return fmt::format("yes, within {:.2g}% ({:.2g}% off)", 100 * row_.tolerance, 100 * worst_);
            case Closeness::formula: return "yes, as an expression";
        }
        throw InternalError("unknown comparison");
    }

    const ReproductionRow& row_;
    const Results& results_;
    std::vector<Diagnostic> errors_;
    double worst_ = 0;
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

}  // namespace

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
        if (outcomes[i].agrees != reproduction.rows[i].disagrees.empty()) rows.push_back(i);
    return rows;
}

std::string to_markdown(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes) {
    std::string out =
        "# What the documents say, and what napkin computes\n\n"
        "Made by `napkin reproduce --output docs/reproduction.md`; `napkin reproduce --check` runs in the tests. Each "
        "figure in the fourth\n"
        "column was computed for this table, from the diagrams and machine files that the queries below it name.\n"
        "[reproduction.toml](reproduction.toml) holds the rows and how each is compared.\n\n";
    for (const auto& [name, title] : reproduction.documents) out += fmt::format("- **{}**: {}\n", name, title);
    std::size_t agreeing = 0, computed = 0, read_back = 0;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (reproduction.rows[i].read_back) {
            ++read_back;
            continue;
        }
        ++computed;
        agreeing += outcomes[i].agrees ? 1 : 0;
    }
    out += fmt::format(
        "\n{} rows are computed: {} agree, {} {}. {} more are read back: what a file of machines/, examples/ or lib/ "
        "states.\n\n",
        computed, agreeing, computed - agreeing,
        computed - agreeing == 1 ? "does not and says why" : "do not and say why", read_back);
    out += "| document | where | what it says | what napkin computes | agrees |\n|---|---|---|---|---|\n";
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const ReproductionRow& row = reproduction.rows[i];
        out += fmt::format("| {} | {} | {} | {} | {} |\n", cell(row.document), cell(row.where), cell(row.says),
                           cell(outcomes[i].computed),
                           cell(row.read_back ? "read back: " + outcomes[i].how : outcomes[i].how));
    }
    out += "\n## Queries\n\nEach is a command line of `napkin`, with `--json`, run from the repository's root.\n\n";
    for (const auto& [name, command] : reproduction.queries)
        out += fmt::format("- {}: `napkin {}`\n", cell(name), command.text);
    return out;
}

}  // namespace napkin
