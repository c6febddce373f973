#pragma once
// What a command says, as a tree that is built once. Programs find each figure at its path, and people read it under
// its label. Any tree is printed as text, JSON and CSV by print.hpp, and as HTML by draw/html.hpp.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "algebra/size.hpp"
#include "support/json.hpp"

namespace napkin::report {

using Json = nlohmann::ordered_json;

/// A figure as data, and as people read it. Without a text it is for programs alone. Data that is discarded is not
/// printed as JSON.
struct Value {
    Json data;
    std::string text;
    std::string source = {};  ///< behind the text its number stands, and at the end what it is
    std::shared_ptr<const std::pair<Size, SymbolNames>> formula = {};  ///< that the text is, for pages
};
Value seconds(double value);
Value bytes(double value);
Value count(std::int64_t value);
Value count(double value);
Value number(double value, int digits = 3);  ///< as many digits that count
Value percent(double share);
Value operations(double value);  ///< "1.5 T"
Value whole(std::int64_t value);
Value words(std::string_view text);
Value formula(const Size& size, const SymbolNames& names);
/// For programs alone.
Value data(Json value);
/// For people alone: why there is no figure, or a mark that there is none.
Value shown(std::string text = "–");

/// A path has names with / between them, from the section that the figure stands in: "time/bound_s". [0] is an element
/// of a list, and [] a new one. Without a path it is for people alone.
struct Figure {
    std::string path, label;
    Value value;
    std::string remark = {};  ///< behind it, where figures stand under each other
};

/// Figures on one line, "bound 12 ms, expected 14 ms"; or each on a line of its own.
struct Figures {
    std::vector<Figure> list;
    std::string_view separator = ", ";  ///< empty: a line for each
};

struct Column {
    std::string path, head;
    std::string csv = {};  ///< its name in CSV where that is not the path's last
};

/// A list of objects in JSON. Columns of numbers are aligned to the right; one that has nothing to read is left out.
/// Where some columns have heads, those without one are for programs alone.
struct Table {
    std::string path, title;
    std::vector<Column> columns;
    std::vector<std::vector<Value>> rows = {};
};

/// A column of a table about things of a kind: the one place where a figure of theirs stands.
template <class Thing>
struct ColumnOf {
    std::string path, head;
    std::function<Value(const Thing&)> value;
};
template <class Thing>
Table table_of(std::string path, std::string title, const auto& things, const std::vector<ColumnOf<Thing>>& columns) {
    Table out{std::move(path), std::move(title), {}, {}};
    for (const ColumnOf<Thing>& column : columns) out.columns.push_back({column.path, column.head});
    for (const auto& thing : things) {
        std::vector<Value>& row = out.rows.emplace_back();
        for (const ColumnOf<Thing>& column : columns) row.push_back(column.value(thing));
    }
    return out;
}

/// The same without what people read.
Table for_programs(Table table);

struct Section;
/// A text is lines for people; "\n" is an empty one.
using Part = std::variant<std::string, Figures, Table, std::vector<Section>>;

struct Section {
    std::string path = {}, title = {};
    int indent = 0;  ///< of its parts, in columns; a title that fits in stands before the first line
    std::vector<Part> parts = {};

    void text(std::string lines) { parts.emplace_back(std::move(lines)); }
    void data(std::string at, Json value) { line({{std::move(at), "", report::data(std::move(value))}}); }
    /// A list for programs; `of` makes an element of a thing.
    void list(std::string at, const auto& things, const auto& of) {
        Json out = Json::array();
        for (const auto& thing : things) out.push_back(of(thing));
        data(std::move(at), std::move(out));
    }
    void line(std::vector<Figure> figures, std::string_view separator = ", ") {
        parts.emplace_back(Figures{std::move(figures), separator});
    }
    void rows(std::vector<Figure> figures) { parts.emplace_back(Figures{std::move(figures), ""}); }
    void table(Table table) { parts.emplace_back(std::move(table)); }
    void add(Section section) { parts.emplace_back(std::vector<Section>{std::move(section)}); }
};

}  // namespace napkin::report
