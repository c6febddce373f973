// A picture as SVG. Every part says what it stands for: class and data-axis, data-array, data-statement.
#include <algorithm>
#include <cmath>

#include "draw/diagram_picture.hpp"

namespace napkin::draw {
namespace {

std::string level_class(int level) { return "level-" + std::to_string(std::clamp(level, 0, 4)); }
std::string fill_class(int level) { return "fill-level-" + std::to_string(std::clamp(level, 0, 4)); }
std::string text_class(int level) { return "text-level-" + std::to_string(std::clamp(level, 0, 4)); }

svg::Element tagged(svg::Element element, const std::string& axis, const std::string& array, const std::string& statement) {
    if (!axis.empty()) element.set("data-axis", axis);
    if (!array.empty()) element.set("data-array", array);
    if (!statement.empty()) element.set("data-statement", statement);
    return element;
}

svg::Element wire_element(const PlacedWire& w) {
    const std::string classes = std::string(w.is_scalar ? "scalar thick dotted " : "wire ") + level_class(w.level);
    svg::Element out;
    if (w.y0 == w.y1) {
        out = svg::line(w.x0, w.y0, w.x1, w.y1, classes);
    } else {
        const double middle = (w.x0 + w.x1) / 2;
        out = svg::path(svg::PathText().move(w.x0, w.y0).cubic(middle, w.y0, middle, w.y1, w.x1, w.y1).str(), classes);
    }
    return tagged(std::move(out), w.axis, w.array, w.statement);
}

svg::Element box_element(const PlacedBox& b) {
    svg::Element out = svg::group("operation " + std::string(name(b.shape)));
    out = std::move(out).titled(b.description.empty() ? b.statement : b.description);
    if (b.is_outlined)
        out.add(svg::rect(b.x, b.y, b.width, b.height, "fill-panel " + level_class(b.level), 5));
    else
        out.add(svg::rect(b.x, b.y, b.width, b.height, "no-fill no-stroke").set("pointer-events", "all"));
    if (b.is_splittable)
        out.add(svg::rect(b.x - 4, b.y - 3, b.width + 8, b.height + 6,
                          "no-fill thick dotted splittable " + level_class(b.level), 6));
    return tagged(std::move(out), "", "", b.statement);
}

svg::Element mark_element(const PlacedMark& m) {
    switch (m.mark) {
        case Mark::dot: return svg::circle(m.x, m.y, m.size, "dot " + fill_class(m.level));
        case Mark::end: return svg::line(m.x, m.y - m.size, m.x, m.y + m.size, "end thick " + level_class(m.level));
        case Mark::scalar: return svg::circle(m.x, m.y, m.size - 1, "scalar fill-paper thick " + level_class(m.level));
        case Mark::place:
            return svg::polygon({{m.x - m.size, m.y}, {m.x, m.y - m.size}, {m.x + m.size, m.y}, {m.x, m.y + m.size}},
                                "place fill-paper wire " + level_class(m.level));
        case Mark::transfer:
            return svg::polygon({{m.x - m.size, m.y - m.size}, {m.x + m.size, m.y}, {m.x - m.size, m.y + m.size}},
                                "transfer-mark " + fill_class(m.level));
        case Mark::triangle:
            return svg::polygon({{m.x - m.size, m.y - m.size}, {m.x + m.size + 2, m.y}, {m.x - m.size, m.y + m.size}},
                                "triangle fill-paper wire " + level_class(m.level));
    }
    return {};
}

svg::Element parenthesis_element(const PlacedParenthesis& p) {
    const double bend = (p.opens ? -1 : 1) * std::min(p.is_loop ? 9.0 : 5.0, (p.y1 - p.y0) / 4);
    const double shoulder = std::min(p.is_loop ? 26.0 : 9.0, (p.y1 - p.y0) / 3);
    svg::PathText d;
    d.move(p.x, p.y0).cubic(p.x + bend, p.y0 + shoulder / 3, p.x + bend, p.y0 + shoulder, p.x + bend, p.y0 + shoulder);
    d.to(p.x + bend, p.y1 - shoulder).cubic(p.x + bend, p.y1 - shoulder, p.x + bend, p.y1 - shoulder / 3, p.x, p.y1);
    return tagged(svg::path(d.str(), p.is_loop ? "loop ink" : "maintained ink"), "", p.array, "");
}

std::string role_class(const PlacedText& t) {
    switch (t.role) {
        case TextRole::wire: return "wire-label " + text_class(t.level);
        case TextRole::name: return "array-name small " + text_class(t.level);
        case TextRole::operation: return "operation-label small " + text_class(t.level);
        case TextRole::bracket: return "loop-label small";
        case TextRole::caption: return "caption strong";
        case TextRole::relation: return "relation";
        case TextRole::legend: return "legend small";
        case TextRole::note: return "note small text-muted";
    }
    return "";
}

void add_text(const PlacedText& t, svg::Element& out) {
    if (t.role == TextRole::wire) {
        // The label interrupts its wire.
        const double width = svg::text_width(t.label, t.size()) + 4;
        out.add(svg::rect(t.x - width / 2, t.y - 4.5 - 7, width, 14, "fill-paper no-stroke"));
    }
    svg::Element text = svg::text(t.x, t.y, t.label, t.is_centred ? svg::Anchor::middle : svg::Anchor::start,
                                  role_class(t));
    if (!t.title.empty() && t.title != plain_text(t.label)) text = std::move(text).titled(t.title);
    out.add(tagged(std::move(text), t.axis, t.array, t.statement));
}

}  // namespace

svg::Document to_svg(const Picture& picture) {
    svg::Document out;
    out.width = picture.width, out.height = picture.height;
    out.title = picture.title, out.description = picture.description;
    out.classes = "diagram";
    const auto layer = [&](std::string_view classes, const auto& things, const auto& element) {
        if (things.empty()) return;
        svg::Element group = svg::group(classes);
        for (const auto& thing : things) group.add(element(thing));
        out.add(std::move(group));
    };
    layer("separators", picture.separators,
          [](const PlacedSeparator& s) { return svg::line(s.x0, s.y, s.x1, s.y, "separator thin dashed rule"); });
    layer("operations", picture.boxes, box_element);
    layer("wires", picture.wires, wire_element);
    layer("cups", picture.cups, [](const PlacedCup& c) {
        svg::PathText d;
        d.move(c.x, c.y0).cubic(c.x + c.depth * 1.33, c.y0, c.x + c.depth * 1.33, c.y1, c.x, c.y1);
        return tagged(svg::path(d.str(), "cup wire " + level_class(c.level)), c.axis, "", c.statement);
    });
    layer("marks", picture.marks, [](const PlacedMark& m) { return tagged(mark_element(m), m.axis, "", m.statement); });
    layer("parentheses", picture.parentheses, parenthesis_element);
    layer("samples", picture.samples,
          [](const PlacedSample& s) { return svg::line(s.x, s.y, s.x + s.width, s.y, "thick " + level_class(s.level)); });
    svg::Element texts = svg::group("texts");
    for (const PlacedText& text : picture.texts) add_text(text, texts);
    if (!texts.children.empty()) out.add(std::move(texts));
    return out;
}

}  // namespace napkin::draw
