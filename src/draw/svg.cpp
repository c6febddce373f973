// Elements, escaping and printing; the style sheet is in svg_style.cpp, widths are in svg_text.cpp.
#include "draw/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "support/result.hpp"

namespace napkin::svg {
namespace {

Element with_class(Element element, std::string_view classes) {
    if (!classes.empty()) element.set("class", classes);
    return element;
}

std::string points_text(const std::vector<std::pair<double, double>>& points) {
    std::string out;
    for (const auto& [x, y] : points) out += (out.empty() ? "" : " ") + number_text(x) + "," + number_text(y);
    return out;
}

Element anchored_text(double x, double y, Anchor anchor, std::string_view classes) {
    Element out = with_class({"text"}, classes);
    out.set("x", x);
    out.set("y", y);
    if (anchor != Anchor::start) out.set("text-anchor", anchor == Anchor::middle ? "middle" : "end");
    return out;
}

void print(const Element& element, int depth, std::string& out) {
    const bool is_text = element.tag == "text";  // blanks in it would be drawn
    if (depth >= 0) out.append(static_cast<std::size_t>(depth) * 2, ' ');
    out += "<" + element.tag;
    for (const auto& [name, value] : element.attributes) out += " " + name + "=\"" + escaped(value) + "\"";
    if (element.text.empty() && element.children.empty()) {
        out += "/>";
    } else {
        out += ">" + escaped(element.text);
        const bool breaks = depth >= 0 && !is_text && !element.children.empty();
        for (const Element& child : element.children) {
            if (breaks) out += "\n";
            print(child, breaks ? depth + 1 : -1, out);
        }
        if (breaks) {
            out += "\n";
            out.append(static_cast<std::size_t>(depth) * 2, ' ');
        }
        out += "</" + element.tag + ">";
    }
}

void add_classes(const Element& element, std::set<std::string, std::less<>>& classes) {
    for (const auto& [name, value] : element.attributes) {
        if (name != "class") continue;
        for (std::size_t begin = 0; begin < value.size();) {
            const std::size_t end = std::min(value.find(' ', begin), value.size());
            classes.insert(value.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    for (const Element& child : element.children) add_classes(child, classes);
}

/// The rules of the style sheet without those for classes that a picture does not have.
std::string rules_for(const std::set<std::string, std::less<>>& classes) {
    const std::string& sheet = style_sheet();
    std::string out;
    for (std::size_t begin = 0; begin < sheet.size();) {
        const std::size_t end = sheet.find('\n', begin) + 1;
        const std::string_view rule = std::string_view(sheet).substr(begin, end - begin);
        begin = end;
        // "svg.napkin .wire {", "svg.napkin text.strong {": what stands behind the last dot of the first selector.
        const std::string_view selector = rule.substr(0, rule.find_first_of("{,"));
        const std::size_t space = selector.find(' '), dot = selector.rfind('.');
        const bool is_of_class = rule.starts_with("svg.napkin ") && space != std::string_view::npos && dot > space &&
                                 dot != std::string_view::npos;
        if (is_of_class && !classes.contains(selector.substr(dot + 1, selector.find_last_not_of(' ') - dot))) continue;
        out += rule;
    }
    return out;
}

std::string printed(const Document& document, bool with_style) {
    Element root{"svg"};
    root.set("xmlns", "http://www.w3.org/2000/svg");
    root.set("class", document.classes.empty() ? "napkin" : "napkin " + document.classes);
    root.set("viewBox", "0 0 " + number_text(document.width) + " " + number_text(document.height));
    root.set("width", document.width);
    root.set("height", document.height);
    root.set("role", "img");
    const std::string title_id = document.id + "-title", description_id = document.id + "-desc";
    root.set("aria-labelledby", document.description.empty() ? title_id : title_id + " " + description_id);
    Element title{"title", {}, document.title};
    title.set("id", title_id);
    root.add(std::move(title));
    if (!document.description.empty()) {
        Element description{"desc", {}, document.description};
        description.set("id", description_id);
        root.add(std::move(description));
    }
    if (!document.definitions.empty()) {
        Element definitions{"defs"};
        definitions.children = document.definitions;
        root.add(std::move(definitions));
    }
    for (const Element& child : document.children) root.add(child);
    std::string out;
    print(root, 0, out);
    out += "\n";
    if (with_style) {
        // The style sheet is the program's own text and is printed as it is: entities are not read in a style of HTML.
        std::set<std::string, std::less<>> classes;
        add_classes(root, classes);
        const std::size_t at = out.find('\n') + 1;
        out.insert(at, "  <style>\n" + rules_for(classes) + "  </style>\n");
        out.insert(0, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    }
    return out;
}

}  // namespace

Element& Element::set(std::string_view name, std::string_view value) & {
    for (auto& [known, old] : attributes)
        if (known == name) {
            old = value;
            return *this;
        }
    attributes.emplace_back(name, value);
    return *this;
}

Element& Element::set(std::string_view name, double value) & { return set(name, std::string_view(number_text(value))); }

Element Element::titled(std::string_view title) && {
    children.insert(children.begin(), Element{"title", {}, std::string(title)});
    return std::move(*this);
}

Element group(std::string_view classes) { return with_class({"g"}, classes); }

Element line(double x1, double y1, double x2, double y2, std::string_view classes) {
    return with_class({"line"}, classes).set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2);
}

Element rect(double x, double y, double width, double height, std::string_view classes, double radius) {
    Element out = with_class({"rect"}, classes).set("x", x).set("y", y).set("width", width).set("height", height);
    if (radius > 0) out.set("rx", radius);
    return out;
}

Element circle(double x, double y, double radius, std::string_view classes) {
    return with_class({"circle"}, classes).set("cx", x).set("cy", y).set("r", radius);
}

Element polygon(const std::vector<std::pair<double, double>>& points, std::string_view classes) {
    return with_class({"polygon"}, classes).set("points", points_text(points));
}

Element polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes) {
    return with_class({"polyline"}, classes).set("points", points_text(points));
}

Element path(std::string_view commands, std::string_view classes) {
    return with_class({"path"}, classes).set("d", commands);
}

Element text(double x, double y, std::string_view content, Anchor anchor, std::string_view classes) {
    Element out = anchored_text(x, y, anchor, classes);
    out.text = content;
    return out;
}

Element text(double x, double y, const Label& label, Anchor anchor, std::string_view classes) {
    Element out = anchored_text(x, y, anchor, classes);
    if (label.size() == 1 && label[0].shift == Span::Shift::base && !label[0].italic) {
        out.text = label[0].text;
        return out;
    }
    out.set("xml:space", "preserve");
    // Shifts are by dy in em, which every reader of SVG knows, and the next span is shifted back.
    double shift = 0;
    for (const Span& span : label) {
        Element part{"tspan", {}, span.text};
        const bool is_shifted = span.shift != Span::Shift::base;
        const double scale = is_shifted ? shifted_scale : 1;
        const double wanted = span.shift == Span::Shift::sub ? 0.25 : span.shift == Span::Shift::super ? -0.38 : 0;
        if (wanted != shift) part.set("dy", number_text((wanted - shift) / scale) + "em");
        if (is_shifted) part.set("font-size", number_text(shifted_scale * 100) + "%");
        if (span.italic) part.set("font-style", "italic");
        shift = wanted;
        out.add(std::move(part));
    }
    return out;
}

PathText& PathText::point(char command, const std::vector<double>& numbers) {
    text_ += command;
    for (std::size_t i = 0; i < numbers.size(); ++i) text_ += (i > 0 ? " " : "") + number_text(numbers[i]);
    return *this;
}

std::string to_text(const Document& document) { return printed(document, true); }
std::string to_inline_text(const Document& document) { return printed(document, false); }

std::string number_text(double value) {
    internal_check(std::isfinite(value), "a picture has a coordinate that is no number");
    std::string out = fmt::format("{:.2f}", value);
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
    return out == "-0" ? "0" : out;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : cleaned(text)) switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default: out += c;
        }
    return out;
}

}  // namespace napkin::svg
