#include "report/print.hpp"

#include <fmt/format.h>

#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::report {
namespace {

template <class... F>
struct Cases : F... {
    using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;

/// The place of a path, made where it is not there.
Json& at_path(Json& root, std::string_view path) {
    Json* at = &root;
    while (!path.empty()) {
        const std::string_view name = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        if (name == "[]")
            at = &at->emplace_back();
        else if (name.starts_with('['))
            at = &(*at)[parse_number<std::size_t>(name.substr(1, name.size() - 2)).value()];
        else
            at = &(*at)[std::string(name)];
    }
    return *at;
}

void put(Json& root, const std::string& path, const Value& value) {
    if (!path.empty() && !value.data.is_discarded()) at_path(root, path) = value.data;
}

void add_json(const Section& section, Json& root);

void add_json(const Table& table, Json& root) {
    if (table.path.empty()) return;
    Json& list = at_path(root, table.path) = Json::array();
    for (const std::vector<Value>& row : table.rows) {
        Json& object = list.emplace_back(Json::object());
        for (std::size_t i = 0; i < row.size(); ++i) put(object, table.columns[i].path, row[i]);
    }
}

void add_json(const Section& section, Json& root) {
    Json& here = at_path(root, section.path);
    for (const Part& part : section.parts)
        std::visit(Cases{[](const std::string&) {},
                         [&](const Figures& figures) {
                             for (const Figure& figure : figures.list) put(here, figure.path, figure.value);
                         },
                         [&](const Table& table) { add_json(table, here); },
                         [&](const std::vector<Section>& sections) {
                             for (const Section& inner : sections) add_json(inner, here);
                         }},
                   part);
}

using Rows = std::vector<std::vector<std::string>>;

class TextPrinter {
public:
    explicit TextPrinter(bool color) : color_(color) {}

    [[nodiscard]] std::string text(const Section& section) {
        add(section, "");
        if (!sources_.empty()) add_title("Sources", "");
        for (std::size_t i = 0; i < sources_.size(); ++i)
            out_ += fmt::format("{:>4} {}\n", fmt::format("[{}]", i + 1), sources_[i]);
        return out_;
    }

private:
    std::string text(const Value& value) {
        if (value.source.empty() || value.text.empty()) return value.text;
        const auto found = find(sources_, value.source) - sources_.begin();
        if (found == std::ssize(sources_)) sources_.push_back(value.source);
        return fmt::format("{} [{}]", value.text, found + 1);
    }

    void add_title(const std::string& title, const std::string& indent) {
        if (title.empty()) return;
        const std::string gap = out_.empty() || out_.ends_with("\n\n") ? "" : "\n";
        out_ += gap + indent + bold(title) + "\n";
    }
    [[nodiscard]] std::string bold(const std::string& text) const {
        return color_ ? "\033[1m" + text + "\033[0m" : text;
    }

    void add(const std::string& lines, const std::string& indent) {
        for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end + 1) {
            end = std::min(lines.find('\n', begin), lines.size());
            out_ += (end == begin ? "" : indent) + lines.substr(begin, end - begin) + "\n";
        }
    }

    void add(const Figures& figures, const std::string& indent) {
        if (!figures.separator.empty()) return add(line_text(figures), indent);
        Rows rows;
        for (const auto& [path, label, value, remark] : figures.list)
            if (!value.text.empty()) rows.push_back({label, text(value), remark});
        out_ += napkin::table(rows, {}, indent);
    }

    void add(const Table& table, std::string indent) {
        const std::vector<ReadColumn> columns = read_columns(table);
        if (columns.empty()) return;
        if (!table.title.empty()) add_title(table.title, indent), indent += "  ";
        Rows rows(1);
        std::vector<std::size_t> to_right;
        for (const auto& [i, is_number] : columns) {
            if (is_number) to_right.push_back(rows[0].size());
            rows[0].push_back(table.columns[i].head);
        }
        if (all_of(rows[0], [](const std::string& head) { return head.empty(); })) rows.clear();
        for (const std::vector<Value>& row : table.rows) {
            rows.emplace_back();
            for (const auto& [i, is_number] : columns) rows.back().push_back(i < row.size() ? text(row[i]) : "");
        }
        out_ += napkin::table(rows, to_right, indent);
    }

    void add(const Section& section, const std::string& outer) {
        const auto columns = static_cast<std::size_t>(section.indent), begin = out_.size() + outer.size();
        const bool is_beside = !section.title.empty() && width(section.title) + 2 <= columns;
        if (!is_beside) add_title(section.title, outer);
        const std::string indent = outer + std::string(columns, ' ');
        for (const Part& part : section.parts)
            std::visit(Cases{[&](const std::vector<Section>& sections) {
                                 for (const Section& inner : sections) add(inner, indent);
                             },
                             [&](const auto& other) { add(other, indent); }},
                       part);
        if (is_beside && out_.size() > begin) out_.replace(begin, columns, left(bold(section.title), columns));
    }

    bool color_;
    std::vector<std::string> sources_;
    std::string out_;
};

const Table* first_table(const Section& section) {
    for (const Part& part : section.parts) {
        if (const auto* table = std::get_if<Table>(&part); table && !table->path.empty()) return table;
        if (const auto* sections = std::get_if<std::vector<Section>>(&part))
            for (const Section& inner : *sections)
                if (const Table* table = first_table(inner)) return table;
    }
    return nullptr;
}

std::string csv_quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

/// What is no number and no text in JSON, such as an error, is its text.
std::string csv_cell(const Value& value) {
    if (value.data.is_null() || value.data.is_discarded()) return "";
    if (value.data.is_string()) return csv_quoted(value.data);
    return value.data.is_structured() ? csv_quoted(value.text) : value.data.dump();
}

}  // namespace

std::vector<ReadColumn> read_columns(const Table& table) {
    const bool has_heads = any_of(table.columns, [](const Column& column) { return !column.head.empty(); });
    std::vector<ReadColumn> out;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        ReadColumn column{i, true};
        bool is_read = false;
        for (const std::vector<Value>& row : table.rows) {
            if (i >= row.size() || row[i].text.empty() || row[i].text == "–") continue;
            is_read = true;
            column.is_number = column.is_number && row[i].data.is_number();
        }
        if (is_read && !(has_heads && table.columns[i].head.empty())) out.push_back(column);
    }
    return out;
}

std::string line_text(const Figures& figures) {
    std::vector<std::string> parts;
    for (const Figure& f : figures.list)
        if (!f.value.text.empty()) parts.push_back(f.label + (f.label.empty() ? "" : " ") + f.value.text);
    return join(parts, figures.separator);
}

std::string to_text(const Section& section, bool color) { return TextPrinter(color).text(section); }

Json to_json(const Section& section) {
    Json out = Json::object();
    add_json(section, out);
    return out;
}

std::string to_csv(const Section& section) {
    const Table* table = first_table(section);
    if (!table) return "";
    std::vector<std::string> lines, cells;
    const auto add = [&] { lines.push_back(join(cells, ",") + "\n"), cells.clear(); };
    for (const Column& column : table->columns)
        if (!column.path.empty())
            cells.push_back(csv_quoted(column.csv.empty() ? column.path.substr(column.path.rfind('/') + 1) : column.csv));
    add();
    for (const std::vector<Value>& row : table->rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            if (!table->columns[i].path.empty()) cells.push_back(csv_cell(row[i]));
        add();
    }
    return join(lines, "");
}

}  // namespace napkin::report
