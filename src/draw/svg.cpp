#include "draw/svg.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "support/ids.hpp"

namespace napkin::draw {
namespace {

/// The character that begins here and its bytes. Pre: UTF-8, or what `escaped` makes one character of.
std::pair<char32_t, std::size_t> character(std::string_view text, std::size_t i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t bytes = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    char32_t c = bytes == 1 ? byte : byte & (0xffU >> (bytes + 1));
    std::size_t read = 1;
    for (; read < bytes && i + read < text.size(); ++read)
        c = (c << 6U) | (static_cast<unsigned char>(text[i + read]) & 0x3fU);
    return {c, read};
}

/// In units of the font's size: the widest of the common fonts without serifs, rounded up.
double advance(char32_t c) {
    constexpr std::u32string_view narrow = U"ijl.,:;'|![]()If t·", wide = U"mwMW@%—…", capitals = U"ABCDEFGHJKLNOPQRSTUVXYZ&+=<>×→≥≤";
    if (c >= 0x300 && c < 0x370) return 0;
    if (narrow.find(c) != narrow.npos) return 0.36;
    if (wide.find(c) != wide.npos) return 0.95;
    if (capitals.find(c) != capitals.npos) return 0.74;
    return c >= 0x1100 ? (c >= 0x2000 && c < 0x2e80 ? 0.7 : 1.0) : 0.6;
}

Element shape(std::string tag, std::string classes) { return element(std::move(tag), std::string(), std::move(classes)); }

}  // namespace

Element line(double x1, double y1, double x2, double y2, std::string classes) {
    return shape("line", std::move(classes))
        .with("x1", number(x1))
        .with("y1", number(y1))
        .with("x2", number(x2))
        .with("y2", number(y2));
}

Element rect(double x, double y, double width, double height, std::string classes, double radius) {
    Element out = shape("rect", std::move(classes))
                      .with("x", number(x))
                      .with("y", number(y))
                      .with("width", number(std::max(0.0, width)))
                      .with("height", number(std::max(0.0, height)));
    if (radius > 0) out.with("rx", number(radius));
    return out;
}

Element circle(double x, double y, double radius, std::string classes) {
    return shape("circle", std::move(classes)).with("cx", number(x)).with("cy", number(y)).with("r", number(radius));
}

Element path(std::string commands, std::string classes) {
    return shape("path", std::move(classes)).with("d", std::move(commands));
}

Element label(double x, double y, std::string text, std::string classes, Anchor anchor) {
    Element out = element("text", std::move(text), std::move(classes)).with("x", number(x)).with("y", number(y));
    if (anchor != Anchor::start) out.with("text-anchor", anchor == Anchor::middle ? "middle" : "end");
    return out;
}

Element titled(Element shape, std::string title) {
    shape.children.insert(shape.children.begin(), element("title", std::move(title)));
    return shape;
}

std::string path_through(const std::vector<std::pair<double, double>>& points, bool closed) {
    std::string out;
    for (const auto& [x, y] : points) out += fmt::format("{}{} {}", out.empty() ? "M" : "L", number(x), number(y));
    return out + (closed ? "Z" : "");
}

std::string hatching(double x, double y, double width, double height, double step) {
    std::string out;
    // The line x + y = s, where it is within the rectangle.
    for (double s = step; s < width + height; s += step) {
        const double x1 = std::min(s, width), y1 = s - x1, y2 = std::min(s, height), x2 = s - y2;
        out += fmt::format("M{} {}L{} {}", number(x + x1), number(y + y1), number(x + x2), number(y + y2));
    }
    return out;
}

double text_width(std::string_view text, double size) {
    double width = 0;
    for (std::size_t i = 0; i < text.size();) {
        const auto [c, bytes] = character(text, i);
        width += advance(c);
        i += bytes;
    }
    return width * size;
}

std::string fitted(std::string_view text, double width, double size) {
    if (text_width(text, size) <= width) return std::string(text);
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t bytes = character(text, i).second;
        const std::string longer = out + std::string(text.substr(i, bytes));
        if (text_width(longer + "…", size) > width) break;
        out = longer;
        i += bytes;
    }
    return out.empty() ? "" : out + "…";
}

std::string series_class(std::size_t number) { return fmt::format("c{}", number % 6); }

std::string_view style_sheet() {
    // Levels are black, orange, green and blue from the outside in, as the paper has them. Every colour of a text, and those of lines beside it,
    // has a contrast of at least 4.5 with its ground.
    return R"(:root,.light{--ground:#fff;--ink:#1b1c21;--muted:#565b6b;--faint:#d5d9e2;--panel:#f4f5f8;--level0:#1b1c21;--level1:#a84d00;--level2:#14713a;--level3:#1d4ed8;--s0:#1d4ed8;--s1:#a84d00;--s2:#14713a;--s3:#7031c9;--s4:#b0175a;--s5:#0b6b83}
@media (prefers-color-scheme:dark){:root{--ground:#15161b;--ink:#e9eaef;--muted:#a9aebd;--faint:#3a3e4c;--panel:#1e2027;--level0:#e9eaef;--level1:#fdb56b;--level2:#7fdc9f;--level3:#93b8ff;--s0:#93b8ff;--s1:#fdb56b;--s2:#7fdc9f;--s3:#c9b0ff;--s4:#f7a3cd;--s5:#6fdcf0}}
.dark{--ground:#15161b;--ink:#e9eaef;--muted:#a9aebd;--faint:#3a3e4c;--panel:#1e2027;--level0:#e9eaef;--level1:#fdb56b;--level2:#7fdc9f;--level3:#93b8ff;--s0:#93b8ff;--s1:#fdb56b;--s2:#7fdc9f;--s3:#c9b0ff;--s4:#f7a3cd;--s5:#6fdcf0}
svg.napkin{font:12px 'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;max-width:100%;height:auto;color:var(--ink)}
svg.napkin text{fill:var(--ink);stroke:none}
svg.napkin .ground{fill:var(--ground)}
svg.napkin .panel{fill:var(--panel);stroke:var(--faint)}
svg.napkin text.head{font-weight:700}
svg.napkin text.big{font-size:14px;font-weight:700}
svg.napkin text.small{font-size:10px}
svg.napkin text.muted{fill:var(--muted)}
svg.napkin text.mono{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace}
svg.napkin .rule{stroke:var(--faint);fill:none}
svg.napkin .axis{stroke:var(--muted);fill:none}
svg.napkin .thin{stroke-width:1;fill:none}
svg.napkin .thick{stroke-width:2.2;fill:none}
svg.napkin .dashed{stroke-dasharray:5 4}
svg.napkin .dotted{stroke-dasharray:1.5 3}
svg.napkin .l0{--c:var(--level0)}svg.napkin .l1{--c:var(--level1)}svg.napkin .l2{--c:var(--level2)}svg.napkin .l3{--c:var(--level3)}
svg.napkin .c0{--c:var(--s0)}svg.napkin .c1{--c:var(--s1)}svg.napkin .c2{--c:var(--s2)}svg.napkin .c3{--c:var(--s3)}svg.napkin .c4{--c:var(--s4)}svg.napkin .c5{--c:var(--s5)}
svg.napkin .stroke{stroke:var(--c,var(--ink));fill:none}
svg.napkin .fill{fill:var(--c,var(--ink));stroke:none}
svg.napkin .tint{fill:var(--c,var(--ink));fill-opacity:.2;stroke:var(--c,var(--ink));stroke-width:1}
svg.napkin .wash{fill:var(--c,var(--ink));fill-opacity:.1;stroke:none}
svg.napkin .hatch{stroke:var(--c,var(--ink));stroke-width:.8;fill:none;stroke-opacity:.75}
svg.napkin text.colored{fill:var(--c,var(--ink))}
svg.napkin .cell{stroke:#8a8f9e;stroke-width:.6}
svg.napkin text.dark-ink{fill:#1b1c21}
svg.napkin .lit{stroke-width:3;font-weight:700}
)";
}

Element svg_element(const Drawing& drawing) {
    Element out = element("svg", std::string(), "napkin")
                      .with("xmlns", "http://www.w3.org/2000/svg")
                      .with("viewBox", fmt::format("0 0 {} {}", number(drawing.width), number(drawing.height)))
                      .with("width", number(drawing.width))
                      .with("height", number(drawing.height))
                      .with("role", "img")
                      .with("aria-label", drawing.title);
    out.add(element("title", drawing.title));
    if (!drawing.description.empty()) out.add(element("desc", drawing.description));
    for (const Element& shape : drawing.shapes) out.add(shape);
    return out;
}

std::string svg_file(const Drawing& drawing) {
    Element out = svg_element(drawing);
    out.children.insert(out.children.begin() + 1 + (drawing.description.empty() ? 0 : 1),
                        {element("style", std::string(style_sheet())),
                         rect(0, 0, drawing.width, drawing.height, "ground")});
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + to_string(out) + "\n";
}

}  // namespace napkin::draw
