// reproduction.toml → Reproduction: [documents], [queries], [[row]].
#include <fmt/format.h>

#include <set>

#include "machine/figure_reader.hpp"
#include "study/parse_size.hpp"
#include "study/reproduction.hpp"
#include "study/reproduction_value.hpp"

namespace napkin {
namespace {

class Reader {
public:
    explicit Reader(const std::shared_ptr<const Source>& source) : source_(source), toml_(source) {}

    Result<Reproduction> run() {
        const toml::table root = toml_.parse();
        if (!toml_.errors().empty()) return std::move(toml_.errors());
        toml_.check_keys(root, {"documents", "queries", "row"}, "the file");
        for (auto& [name, text] : texts(root, "documents")) reproduction_.documents[name] = text.text;
        reproduction_.queries = texts(root, "queries");
        const toml::array* rows = root["row"].as_array();
        if (rows == nullptr || rows->empty())
            toml_.error("missing-key", toml_.begin_of_file(), "the file has no rows", "[[row]]", "");
        else
            for (const toml::node& node : *rows)
                if (const toml::table* table = node.as_table()) read_row(*table);
        for (const auto& [name, query] : reproduction_.queries)
            if (!used_.contains(name))
                toml_.error("unused-query", query.range, fmt::format("no row uses the query '{}'", name), "", "");
        if (toml_.errors().empty()) return std::move(reproduction_);
        stable_sort(toml_.errors(),
                    [](const Diagnostic& a, const Diagnostic& b) { return a.range.begin < b.range.begin; });
        return std::move(toml_.errors());
    }

private:
    /// A table of texts by name.
    std::map<std::string, PlacedText> texts(const toml::table& root, const std::string& key) {
        std::map<std::string, PlacedText> out;
        const toml::table* table = root[key].as_table();
        if (table == nullptr) {
            toml_.missing(root, key, "the file", "a table [" + key + "] of texts");
            return out;
        }
        for (const auto& [name, node] : *table)
            if (const auto text = placed(node, fmt::format("'{}' of [{}]", std::string(name.str()), key)))
                out[std::string(name.str())] = *text;
        return out;
    }

    /// The place is that of the text itself, behind its quotes.
    std::optional<PlacedText> placed(const toml::node& node, const std::string& what) {
        SourceRange range = toml_.range_of(node.source());
        if (const auto* text = node.as_string(); text != nullptr && !text->get().empty()) {
            const std::size_t begin = source_->text.find(text->get(), range.begin);
            if (begin < range.end) range.begin = static_cast<std::uint32_t>(begin);
            return PlacedText{text->get(), range};
        }
        toml_.error("bad-value", range, what + " is not a text", "a text in quotes", "");
        return std::nullopt;
    }

    /// One text or an array of them.
    std::vector<PlacedText> several(const toml::table& table, const std::string& key, const std::string& where) {
        std::vector<PlacedText> out;
        const toml::node* node = table.get(key);
        if (node == nullptr) return out;
        const std::string what = fmt::format("'{}' of {}", key, where);
        if (const toml::array* array = node->as_array()) {
            for (const toml::node& element : *array)
                if (const auto text = placed(element, "an element of " + what)) out.push_back(*text);
        } else if (const auto text = placed(*node, what)) {
            out.push_back(*text);
        }
        return out;
    }

    std::string optional_text(const toml::table& table, const std::string& key, const std::string& where) {
        return table.contains(key) ? toml_.text(table, key, where) : "";
    }

    void read_row(const toml::table& table) {
        const std::size_t errors_before = toml_.errors().size();
        const std::string where = fmt::format(
            "row {}{}", reproduction_.rows.size() + 1,
            table["figure"].is_string() ? " '" + *table["figure"].value<std::string>() + "'" : "");
        toml_.check_keys(table, {"document", "figure", "value", "is", "formula", "text", "at", "unit", "input", "why"},
                         where);
        ReproductionRow row;
        row.document = toml_.text(table, "document", where);
        row.range = toml_.range_of(table.source());
        const auto documents = mapped<std::string>(reproduction_.documents, [](const auto& entry) { return entry.first; });
        toml_.check_name(table, "document", row.document, documents, "document");
        row.figure = toml_.text(table, "figure", where);
        row.unit = optional_text(table, "unit", where);
        row.input = optional_text(table, "input", where);
        row.why = optional_text(table, "why", where);
        row.values = several(table, "value", where);
        if (!table.contains("value") && row.why.empty())
            toml_.missing(table, "value' or 'why", where, "an expression over the queries, or why there is none");
        read_comparison(table, row, where);
        for (const PlacedText& value : row.values)
            for (const ResultName& name : names(value)) check_query(value, name);
        for (const PlacedText& text : row.expected) check_expected(text, row.comparison);
        if (toml_.errors().size() == errors_before && !row.values.empty() && row.values.size() != row.expected.size())
            toml_.error("bad-value", row.range,
                        fmt::format("{} has {} values and {} figures to compare with", where, row.values.size(),
                                    row.expected.size()),
                        "as many", "");
        reproduction_.rows.push_back(std::move(row));
    }

    void read_comparison(const toml::table& table, ReproductionRow& row, const std::string& where) {
        const bool is = table.contains("is"), formula = table.contains("formula"), as_text = table.contains("text");
        if (int{is} + int{formula} + int{as_text} != 1) {
            toml_.missing(table, is || formula ? "one of 'is', 'formula' and 'text' alone" : "is', 'formula' or 'text",
                          where, "a number, a size expression, or a text");
            return;
        }
        row.expected = several(table, is ? "is" : formula ? "formula" : "text", where);
        row.comparison = formula ? Closeness::formula : as_text ? Closeness::text : Closeness::number;
        const toml::node* at = table.get("at");
        if (at == nullptr) return;
        const toml::table* symbols = at->as_table();
        if (symbols == nullptr || symbols->contains("") || is) {
            toml_.error("bad-value", toml_.range_of(at->source()), fmt::format("'at' of {} is misplaced", where),
                        "a table of texts, beside 'formula' or 'text'", "");
            return;
        }
        for (const auto& [symbol, node] : *symbols)
            if (const auto text = placed(node, fmt::format("'at.{}' of {}", std::string(symbol.str()), where))) {
                if (formula) check_size(*text);
                row.at[std::string(symbol.str())] = text->text;
            }
    }

    /// A source's figure is typed in: napkin's own results have no part in it.
    void check_expected(const PlacedText& text, Closeness comparison) {
        if (comparison == Closeness::formula) check_size(text);
        if (comparison != Closeness::number || printed_figure(text.text)) return;
        for (const ResultName& name : names(text))
            toml_.error("bad-value", part(text, name.at, name.name.size()),
                        fmt::format("the source's figure names napkin's query '{}'", name.name),
                        "numbers and + - * / ^ alone", "");
    }

    std::vector<ResultName> names(const PlacedText& text) {
        auto found = names_in(text.text);
        if (auto* all = std::get_if<std::vector<ResultName>>(&found)) return std::move(*all);
        const auto& error = std::get<ValueError>(found);
        toml_.error(error.code, part(text, error.at, error.length), error.message, error.expected, error.hint);
        return {};
    }

    void check_query(const PlacedText& text, const ResultName& name) {
        used_.insert(name.name);
        if (reproduction_.queries.contains(name.name)) return;
        const auto known = mapped<std::string>(reproduction_.queries, [](const auto& query) { return query.first; });
        toml_.error("unknown-query", part(text, name.at, name.name.size()),
                    fmt::format("there is no query '{}'", name.name), "a name under [queries]",
                    did_you_mean(name.name, known));
    }

    void check_size(const PlacedText& text) {
        SymbolTable symbols;
        const auto parsed = parse_size(text.text, symbols);
        if (const auto* error = std::get_if<SizeSyntaxError>(&parsed))
            toml_.error("bad-expression", part(text, error->at, 1), "this is no size expression", error->message, "");
    }

    static SourceRange part(const PlacedText& text, std::size_t at, std::size_t length) {
        SourceRange range = text.range;
        range.begin += static_cast<std::uint32_t>(at);
        range.end = range.begin + static_cast<std::uint32_t>(length);
        return range;
    }

    std::shared_ptr<const Source> source_;
    FigureReader toml_;
    Reproduction reproduction_;
    std::set<std::string> used_;
};

}  // namespace

Result<Reproduction> read_reproduction(const std::shared_ptr<const Source>& text) { return Reader(text).run(); }

}  // namespace napkin
