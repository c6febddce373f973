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
            table["where"].is_string() ? " '" + *table["where"].value<std::string>() + "'" : "");
        toml_.check_keys(table,
                         {"document", "where", "says", "value", "is", "formula", "text", "at", "within", "rounded",
                          "unit", "note", "disagrees", "read_back"},
                         where);
        ReproductionRow row;
        row.document = toml_.text(table, "document", where);
        row.range = toml_.range_of(table.source());
        std::vector<std::string> documents;
        for (const auto& entry : reproduction_.documents) documents.push_back(entry.first);
        toml_.check_name(table, "document", row.document, documents, "document");
        row.where = toml_.text(table, "where", where);
        row.says = toml_.text(table, "says", where);
        row.unit = optional_text(table, "unit", where);
        row.note = optional_text(table, "note", where);
        row.disagrees = optional_text(table, "disagrees", where);
        row.values = several(table, "value", where);
        if (!table.contains("value")) toml_.missing(table, "value", where, "an expression over the queries");
        if (const toml::node* node = table.get("read_back")) {
            row.read_back = node->value<bool>().value_or(false);
            if (!row.read_back)
                toml_.error("bad-value", toml_.range_of(node->source()),
                            fmt::format("'read_back' of {} is not true", where), "true, or nothing", "");
        }
        read_comparison(table, row, where);
        for (const PlacedText& value : row.values) check_expression(value);
        for (const PlacedText& text : row.expected) {
            if (row.comparison == Closeness::formula)
                check_size(text);
            else if (row.comparison != Closeness::text)
                check_expression(text);
        }
        if (toml_.errors().size() == errors_before && row.values.size() != row.expected.size())
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
        row.comparison = formula ? Closeness::formula : as_text ? Closeness::text : Closeness::exact;
        if (const toml::node* within = table.get("within")) {
            row.comparison = Closeness::within;
            row.tolerance = within->value<double>().value_or(0);
            if (!(row.tolerance > 0 && row.tolerance < 1) || !is)
                toml_.error("bad-value", toml_.range_of(within->source()),
                            fmt::format("'within' of {} is no tolerance", where),
                            "a share between 0 and 1, beside 'is'", "");
        }
        if (const toml::node* rounded = table.get("rounded")) {
            if (!rounded->value<bool>().value_or(false) || !is || table.contains("within"))
                toml_.error("bad-value", toml_.range_of(rounded->source()),
                            fmt::format("'rounded' of {} is not true", where), "true, beside 'is' and without 'within'",
                            "");
            row.comparison = Closeness::rounded;
        }
        if (const toml::node* at = table.get("at")) {
            const toml::table* symbols = at->as_table();
            if (symbols == nullptr || !formula)
                toml_.error("bad-value", toml_.range_of(at->source()), fmt::format("'at' of {} is misplaced", where),
                            "a table symbol = \"size expression\", beside 'formula'", "");
            else
                for (const auto& [symbol, node] : *symbols)
                    if (const auto text = placed(node, fmt::format("'at.{}' of {}", std::string(symbol.str()), where)))
                        check_size(*text), row.at[std::string(symbol.str())] = text->text;
        }
    }

    void check_expression(const PlacedText& text) {
        const auto names = names_in(text.text);
        if (const auto* error = std::get_if<ValueError>(&names)) {
            toml_.error(error->code, part(text, error->at, error->length), error->message, error->expected, error->hint);
            return;
        }
        for (const ResultName& name : std::get<std::vector<ResultName>>(names)) {
            used_.insert(name.name);
            if (reproduction_.queries.contains(name.name)) continue;
            const auto known = mapped<std::string>(reproduction_.queries, [](const auto& query) { return query.first; });
            toml_.error("unknown-query", part(text, name.at, name.name.size()),
                        fmt::format("there is no query '{}'", name.name), "a name under [queries]",
                        did_you_mean(name.name, known));
        }
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
