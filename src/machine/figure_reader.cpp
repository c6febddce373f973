#include "machine/figure_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
/// The byte offset of a 1-based line and column; toml++ counts columns in code points.
std::uint32_t offset_of(const std::string& text, toml::source_position position) {
    std::size_t offset = 0;
    for (toml::source_index line = 1; line < position.line && offset < text.size(); ++line) {
        const std::size_t end = text.find('\n', offset);
        offset = end == std::string::npos ? text.size() : end + 1;
    }
    for (toml::source_index column = 1; column < position.column && offset < text.size() && text[offset] != '\n'; ++column) {
        ++offset;
        while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0U) == 0x80U) ++offset;
    }
    return static_cast<std::uint32_t>(offset);
}

/// Where the text has a character past ASCII outside of strings and comments, or a string of several lines begins;
/// npos: nowhere. TOML allows no such character there, and toml++ 3.3 is undefined on some of them where it looks for
/// blanks.
std::size_t first_foreign(const std::string& text) {
    char quote = 0;
    bool comment = false;
    for (std::size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\n' || c == '\r') {
            quote = 0, comment = false;
        } else if (comment) {
            continue;
        } else if (quote != 0) {
            if (c == '\\' && quote == '"')
                ++i;
            else if (c == quote)
                quote = 0;
        } else if (c == '#') {
            comment = true;
        } else if (c == '"' || c == '\'') {
            if (text.compare(i, 3, std::string(3, c)) == 0) return i;
            quote = c;
        } else if ((static_cast<unsigned char>(c) & 0x80U) != 0) {
            return i;
        }
    }
    return std::string::npos;
}

}  // namespace

toml::table FigureReader::parse() {
    if (const std::size_t at = first_foreign(source_->text); at != std::string::npos) {
        const auto begin = static_cast<std::uint32_t>(at);
        const bool string = source_->text[at] == '"' || source_->text[at] == '\'';
        error("bad-toml", {source_, begin, begin + 1},
              string ? "a text of several lines" : "a character past ASCII outside of texts and comments",
              "a TOML file");
        return {};
    }
    try {
        toml::table root = toml::parse(std::string_view(source_->text));
        check_texts(root);
        return root;
    } catch (const toml::parse_error& e) {
        error("bad-toml", range_of(e.source()), std::string(e.description()), "a TOML file");
        return {};
    }
}

void FigureReader::check_texts(const toml::node& node) {
    if (const auto* text = node.as_string(); text && printable(text->get()) != text->get())
        error("bad-value", range_of(node.source()), "a text with control characters in it",
              "what can be shown on a terminal");
    if (const auto* array = node.as_array())
        for (const toml::node& element : *array) check_texts(element);
    if (const auto* table = node.as_table())
        for (const auto& [key, value] : *table) check_texts(value);
}

SourceRange FigureReader::range_of(const toml::source_region& region) const {
    const std::uint32_t begin = offset_of(source_->text, region.begin), end = offset_of(source_->text, region.end);
    return {source_, begin, std::max(end, begin + 1)};
}

void FigureReader::error(std::string code, SourceRange range, std::string message, std::string expected, std::string hint) {
    errors_.push_back(
        {std::move(code), std::move(range), std::move(message), std::move(expected), std::move(hint), {}, ExitCode::bad_input});
}

void FigureReader::check_keys(const toml::table& table, const std::vector<std::string>& known, const std::string& where) {
    for (const auto& [key, value] : table) {
        const std::string text(key.str());
        if (contains(known, text)) continue;
        const std::string near = nearest_name(text, known);
        if (!near.empty()) misspelt_.insert({&table, near});
        error("unknown-key", range_of(key.source()), fmt::format("unknown key '{}' in {}", text, where),
              "one of " + join(known, ", "), did_you_mean(text, known));
    }
}

void FigureReader::missing(const toml::table& table, const std::string& key, const std::string& where, std::string expected) {
    if (misspelt(table, key)) return;
    SourceRange range = range_of(table.source());
    if (const std::size_t line = source_->text.find('\n', range.begin); line < range.end)
        range.end = static_cast<std::uint32_t>(line);
    error("missing-key", std::move(range), fmt::format("{} has no '{}'", where, key), std::move(expected));
}

std::string FigureReader::text(const toml::table& table, const std::string& key, const std::string& where) {
    const toml::node* node = table.get(key);
    if (!node) {
        missing(table, key, where, "a text");
        return "";
    }
    if (const auto* text = node->as_string()) return text->get();
    bad_value(*node, fmt::format("'{}' of {} is not a text", key, where), "a text in quotes");
    return "";
}

std::optional<Figure> FigureReader::figure_of(const toml::node& given, const toml::table& table, const std::string& key,
                                              const TableName& where, Dimension dimension, Zero zero) {
    const toml::node* node = &given;
    SourceRange range = range_of(node->source());
    std::optional<std::string> source = table["source"].value<std::string>();
    if (const toml::table* inner = node->as_table()) {
        check_keys(*inner, {"value", "source"}, fmt::format("'{}' of {}", key, where.shown));
        if (auto own = (*inner)["source"].value<std::string>()) source = own;
        node = inner->get("value");
        if (!node) {
            error("missing-key", range, fmt::format("'{}' of {} has no 'value'", key, where.shown),
                  quantity_help(dimension));
            return std::nullopt;
        }
        range = range_of(node->source());
    }
    std::optional<double> value;
    if (dimension == Dimension::number) {
        if (node->is_number()) value = node->value<double>();
    } else if (const auto* text = node->as_string()) {
        value = parse_quantity(text->get(), dimension);
    }
    if (!value || !std::isfinite(*value)) {
        const bool bare = node->is_number() && dimension != Dimension::number;
        error("bad-value", range,
              fmt::format("'{}' of {} {}", key, where.shown,
                          bare ? "has no unit" : "is not " + std::string(quantity_kind(dimension))),
              quantity_help(dimension));
        return std::nullopt;
    }
    if ((!source || source->empty()) && !misspelt(table, "source") && unsourced_.insert(&table).second)
        error("missing-source", range, fmt::format("'{}' of {} has no source", key, where.shown),
              "source = \"…\" in the same table, or { value = …, source = \"…\" }");
    if (*value < 0 || (*value == 0 && zero == Zero::impossible && dimension != Dimension::seconds))
        error("impossible-figure", range,
              fmt::format("impossible: '{}' of {} is {}", key, where.shown, *value < 0 ? "negative" : "zero"));
    else
        places_[where.path + key] = range;
    return Figure{*value, source.value_or(""), origin_of(source.value_or(""))};
}

std::optional<Figure> FigureReader::optional_figure(const toml::table& table, const std::string& key,
                                                    const TableName& where, Dimension dimension, Zero zero) {
    const toml::node* node = table.get(key);
    return node ? figure_of(*node, table, key, where, dimension, zero) : std::nullopt;
}

Figure FigureReader::figure(const toml::table& table, const std::string& key, const TableName& where,
                            Dimension dimension, Zero zero) {
    if (!table.contains(key)) missing(table, key, where.shown, quantity_help(dimension));
    return optional_figure(table, key, where, dimension, zero).value_or(Figure{});
}

Figure FigureReader::count(const toml::table& table, const std::string& key, const TableName& where, double low,
                           double high) {
    const Figure read = figure(table, key, where, Dimension::number);
    const auto place = places_.find(where.path + key);
    if (place == places_.end()) return read;
    std::string why;
    if (read.value != std::floor(read.value))
        why = fmt::format("impossible: '{}' of {} is {}, and there are whole ones only", key, where.shown, read.value);
    else if (read.value < low || read.value > high)
        why = fmt::format("impossible: '{}' of {} is {}; between {} and {} there are machines", key, where.shown,
                          read.value, low, high);
    if (why.empty()) return read;
    error("impossible-figure", place->second, why);
    places_.erase(place);
    return read;
}

std::optional<std::int64_t> FigureReader::integer(const toml::table& table, const std::string& key,
                                                  const std::string& where, std::int64_t low, std::int64_t high) {
    const toml::node* node = table.get(key);
    const std::string expected = fmt::format("a whole number from {} to {}", low, high);
    if (!node) {
        missing(table, key, where, expected);
        return std::nullopt;
    }
    const auto* value = node->as_integer();
    if (value && value->get() >= low && value->get() <= high) return value->get();
    bad_value(*node, fmt::format("'{}' of {} is not {}", key, where, expected), expected);
    return std::nullopt;
}

std::vector<const toml::table*> FigureReader::tables(const toml::table& root, const std::string& key, bool required) {
    std::vector<const toml::table*> out;
    const toml::node* node = root.get(key);
    if (!node && !required) return out;
    const toml::array* array = node ? node->as_array() : nullptr;
    if (array)
        for (const toml::node& element : *array)
            if (const toml::table* table = element.as_table()) out.push_back(table);
    if (!node || !array || out.size() != array->size() || out.empty())
        error(node ? "bad-value" : "missing-key", node ? range_of(node->source()) : begin_of_file(),
              fmt::format("the machine has no [[{}]]", key), fmt::format("one or more tables [[{}]]", key));
    return out;
}

void FigureReader::check_name(const toml::table& table, const std::string& key, const std::string& name,
                              const std::vector<std::string>& known, const std::string& what) {
    const toml::node* node = table.get(key);
    if (!node || !node->is_string() || contains(known, name)) return;
    bad_value(*node, fmt::format("there is no {} '{}'", what, name), "one of " + join(known, ", "),
              did_you_mean(name, known));
}

}  // namespace napkin
