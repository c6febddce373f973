#include "draw/element.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/ids.hpp"
#include "support/result.hpp"
#include "support/source.hpp"

namespace napkin::draw {
namespace {

/// Elements of HTML that have no end.
constexpr std::string_view without_end[] = {"meta", "link", "br", "hr", "input", "img", "col"};
/// Elements of SVG and MathML that are written as one tag where they are empty.
constexpr std::string_view drawn[] = {"line", "rect", "path", "circle", "polyline", "polygon", "use", "mspace"};

void write(const Element& e, std::string& out) {
    if (e.tag.empty()) {
        out += escaped(e.text);
        return;
    }
    out += '<';
    out += e.tag;
    for (const auto& [name, value] : e.attributes) {
        out += ' ';
        out += name;
        out += "=\"";
        out += escaped(value);
        out += '"';
    }
    const bool is_empty = e.text.empty() && e.children.empty();
    if (is_empty && contains(drawn, e.tag)) {
        out += "/>";
        return;
    }
    out += '>';
    if (contains(without_end, e.tag)) return;
    if (e.tag == "style" || e.tag == "script") {
        internal_check(e.text.find("</") == std::string::npos, "a style or script that ends before its end");
        out += e.text;
    } else {
        out += escaped(e.text);
    }
    for (const Element& child : e.children) write(child, out);
    out += "</";
    out += e.tag;
    out += '>';
}

}  // namespace

Element& Element::add(Element child) {
    children.push_back(std::move(child));
    return children.back();
}

Element& Element::with(std::string name, std::string value) & {
    attributes.emplace_back(std::move(name), std::move(value));
    return *this;
}

Element Element::with(std::string name, std::string value) && {
    attributes.emplace_back(std::move(name), std::move(value));
    return std::move(*this);
}

Element element(std::string tag, std::string text, std::string classes) {
    Element out{std::move(tag), {}, std::move(text), {}};
    if (!classes.empty()) out.attributes.emplace_back("class", std::move(classes));
    return out;
}

Element text_node(std::string text) { return {"", {}, std::move(text), {}}; }

Element element(std::string tag, std::vector<Element> children, std::string classes) {
    Element out = element(std::move(tag), std::string(), std::move(classes));
    out.children = std::move(children);
    return out;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default: out += c;
        }
    return out;
}

std::string number(double value) {
    if (!std::isfinite(value)) return "0";
    std::string out = fmt::format("{:.2f}", value);
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
    return out == "-0" ? "0" : out;
}

std::string to_string(const Element& element) {
    std::string out;
    write(element, out);
    return out;
}

}  // namespace napkin::draw
