#include "draw/html.hpp"

#include <fmt/format.h>

#include "support/ids.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin::html {
namespace {

constexpr std::string_view without_end[] = {"meta", "link", "br", "hr", "input", "img", "col"};
/// Tags of our own, for what is printed as it is: a picture that was printed by svg.hpp, and text without an element.
constexpr std::string_view printed_tag = "#printed", text_tag = "#text";

void print_html(const Element& e, std::string& out) {
    if (e.tag == printed_tag) {
        out += e.text;
        return;
    }
    if (e.tag == text_tag) {
        out += svg::escaped(e.text);
        return;
    }
    out += "<" + e.tag;
    for (const auto& [name, value] : e.attributes) out += " " + name + "=\"" + svg::escaped(value) + "\"";
    out += ">";
    if (contains(without_end, e.tag)) return;
    const bool keeps_lines = e.tag == "pre";
    if (e.tag == "style" || e.tag == "script") {
        internal_check(e.text.find("</") == std::string::npos, "a style or script would end before its end");
        out += e.text;
    } else {
        // Newlines are blanks to svg::escaped.
        for (std::size_t begin = 0; begin <= e.text.size();) {
            const std::size_t end = std::min(e.text.find('\n', begin), e.text.size());
            out += svg::escaped(std::string_view(e.text).substr(begin, end - begin));
            if (end < e.text.size()) out += '\n';
            begin = end + 1;
        }
    }
    for (const Element& child : e.children) print_html(child, out);
    out += "</" + e.tag + ">";
    if (!keeps_lines && (e.tag == "section" || e.tag == "tr" || e.tag == "p" || e.tag == "table" || e.tag == "li"))
        out += "\n";
}

/// The prime of a state's former value ends its name.
bool is_prime(std::string_view code, std::size_t i) { return code.substr(i, 3) == "′"; }

bool is_letter_or_beyond_ascii(char c) { return is_letter(c) || static_cast<unsigned char>(c) >= 0x80; }

Element symbol_element(const Symbol& symbol, const SymbolNames& names) {
    const std::string name = names(symbol);
    const std::size_t sign = name.find('_');
    if (is_part(symbol) && sign != std::string::npos && sign > 0)
        return element("msub", {element("mi", name.substr(0, sign)), element("mi", name.substr(sign + 1))})
            .data("axis", name.substr(sign + 1));
    Element out = element("mi", name);
    if (symbol.kind == SymbolKind::axis) out.set("data-axis", name);
    return out;
}

Element number_element(const Rational& r) {
    const std::string n = std::to_string(r.numerator() < 0 ? -r.numerator() : r.numerator());
    if (r.is_integer()) return element("mn", n);
    return element("mfrac", {element("mn", n), element("mn", std::to_string(r.denominator()))});
}

Element power(Element base, const Rational& exponent) {
    if (exponent == Rational(1)) return base;
    if (exponent == Rational(1, 2)) return element("msqrt", {std::move(base)});
    return element("msup", {std::move(base), number_element(exponent)});
}

Element row_of(std::vector<Element> factors) {
    return factors.size() == 1 ? std::move(factors[0]) : element("mrow", std::move(factors));
}

Element term_element(const Monomial& monomial, const Rational& coefficient, const SymbolNames& names) {
    std::vector<Element> above, below;
    const std::int64_t n = coefficient.numerator() < 0 ? -coefficient.numerator() : coefficient.numerator();
    if (n != 1) above.push_back(element("mn", std::to_string(n)));
    if (coefficient.denominator() != 1) below.push_back(element("mn", std::to_string(coefficient.denominator())));
    for (const auto& [symbol, exponent] : monomial) {
        Element base = symbol.kind == SymbolKind::prime ? element("mn", std::to_string(symbol.id))
                                                        : symbol_element(symbol, names);
        if (exponent < Rational(0))
            below.push_back(power(std::move(base), Rational(0) - exponent));
        else
            above.push_back(power(std::move(base), exponent));
    }
    if (above.empty()) above.push_back(element("mn", "1"));
    Element top = row_of(std::move(above));
    if (below.empty()) return top;
    return element("mfrac", {std::move(top), row_of(std::move(below))});
}

void add_terms(const Size& size, const SymbolNames& names, std::vector<Element>& out) {
    if (size.is_zero()) out.push_back(element("mn", "0"));
    bool first = true;
    for (const auto& [monomial, coefficient] : size.terms()) {
        const bool negative = coefficient < Rational(0);
        if (!first || negative) out.push_back(element("mo", negative ? "−" : "+"));
        out.push_back(term_element(monomial, coefficient, names));
        first = false;
    }
}

Element math_of(std::vector<Element> parts, const std::string& read) {
    return element("math", {element("mrow", std::move(parts))}).set("display", "inline").set("aria-label", read);
}

}  // namespace

Element element(std::string_view tag, std::string_view text, std::string_view classes) {
    Element out{std::string(tag), {}, std::string(text), {}};
    if (!classes.empty()) out.set("class", classes);
    return out;
}

Element element(std::string_view tag, std::vector<Element> children, std::string_view classes) {
    Element out = element(tag, std::string_view(), classes);
    out.children = std::move(children);
    return out;
}

Element text(std::string_view content) { return {std::string(text_tag), {}, std::string(content), {}}; }
Element picture(const svg::Document& document) {
    return {std::string(printed_tag), {}, svg::to_inline_text(document), {}};
}
Element plain(std::string_view tag, std::string content) { return {std::string(tag), {}, std::move(content), {}}; }
std::vector<Element> with_names(std::string_view code, const KnownNames& names) {
    std::vector<Element> out;
    std::string rest;
    const auto flush = [&] {
        if (!rest.empty()) out.push_back(element("span", rest));
        rest.clear();
    };
    for (std::size_t i = 0; i < code.size();) {
        if (!is_letter_or_beyond_ascii(code[i]) || is_prime(code, i)) {
            rest += code[i++];
            continue;
        }
        std::size_t end = i;
        while (end < code.size() && !is_prime(code, end) &&
               (is_letter_or_beyond_ascii(code[end]) || (code[end] >= '0' && code[end] <= '9')))
            ++end;
        const std::string word(code.substr(i, end - i));
        const bool is_axis = contains(names.axes, word), is_array = contains(names.arrays, word);
        if (is_axis || is_array) {
            flush();
            out.push_back(element("span", word, is_axis ? "ax" : "ar").set(is_axis ? "data-axis" : "data-array", word));
        } else {
            rest += word;
        }
        i = end;
    }
    flush();
    return out;
}

Element table(const report::Table& table, const KnownNames& names) {
    const std::vector<report::ReadColumn> columns = report::read_columns(table);
    Element head = element("tr"), body = element("tbody");
    for (const auto& [i, is_number] : columns)
        head.add(element("th", table.columns[i].head, is_number ? "n" : "").set("scope", "col"));
    for (const std::vector<report::Value>& row : table.rows) {
        Element& line = body.children.emplace_back(element("tr"));
        for (const auto& [i, is_number] : columns) {
            const bool is_first = line.children.empty();
            const report::Value value = i < row.size() ? row[i] : report::Value();
            Element content = value.formula ? math(value.formula->first, value.formula->second)
                              : is_first    ? element("span", with_names(value.text, names))
                                            : text(value.text);
            Element cell = element(is_first ? "th" : "td", {std::move(content)}, is_number ? "n" : "");
            if (is_first) cell.set("scope", "row");
            line.add(std::move(cell));
        }
    }
    Element out = element("table", {element("caption", table.title), element("thead", {std::move(head)}), std::move(body)});
    // Wide tables scroll by themselves, with the keyboard too.
    return element("div", {std::move(out)}, "wide").set("tabindex", "0").set("role", "region").set("aria-label", table.title);
}

std::vector<Element> content(const report::Section& section, const KnownNames& names, const std::string& title) {
    const std::string& here = section.title.empty() ? title : section.title;
    std::vector<Element> out;
    if (!section.title.empty()) out.push_back(element("h3", section.title));
    const auto add_line = [&](const std::string& text) {
        if (!text.empty() && text != "\n") out.push_back(element("p", text));
    };
    const auto add_table = [&](report::Table of) {
        if (of.title.empty()) of.title = here;
        if (!report::read_columns(of).empty()) out.push_back(table(of, names));
    };
    for (const report::Part& part : section.parts) {
        if (const auto* lines = std::get_if<std::string>(&part)) add_line(*lines);
        if (const auto* of = std::get_if<report::Table>(&part)) add_table(*of);
        if (const auto* sections = std::get_if<std::vector<report::Section>>(&part))
            for (const report::Section& inner : *sections) append(out, content(inner, names, here));
        const auto* figures = std::get_if<report::Figures>(&part);
        if (!figures) continue;
        if (!figures->separator.empty()) {
            add_line(report::line_text(*figures));
            continue;
        }
        report::Table rows{"", "", std::vector<report::Column>(3), {}};
        for (const auto& [path, label, value, remark] : figures->list)
            if (!value.text.empty()) rows.rows.push_back({report::shown(label), value, report::shown(remark)});
        add_table(std::move(rows));
    }
    return out;
}

Element code_block(std::string_view code, const KnownNames& names, std::string_view prefix, std::string_view label) {
    Element pre = element("pre").set("tabindex", "0").set("aria-label", label);
    int number = 0;
    for (std::size_t begin = 0; begin < code.size();) {
        const std::size_t end = std::min(code.find('\n', begin), code.size());
        Element line = element("span", "", "line").set("id", fmt::format("{}-{}", prefix, ++number));
        for (Element& part : with_names(code.substr(begin, end - begin), names)) line.add(std::move(part));
        line.add(text(""));
        pre.add(std::move(line));
        pre.children.push_back({"#printed", {}, "\n", {}});
        begin = end + 1;
    }
    return pre;
}

Element math(const Size& size, const SymbolNames& names) {
    std::vector<Element> parts;
    add_terms(size, names, parts);
    return math_of(std::move(parts), to_string(size, names));
}

std::string to_text(const Element& element) {
    std::string out;
    print_html(element, out);
    return out;
}

}  // namespace napkin::html
