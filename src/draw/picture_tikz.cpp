// A picture as TikZ, to be put into a paper: needs the packages tikz, xcolor, and fontenc with T1.
#include <fmt/format.h>

#include <algorithm>

#include "draw/diagram_picture.hpp"

namespace napkin::draw {
namespace {

constexpr double cm_per_pixel = 0.02, points_per_cm = 72.27 / 2.54;

/// y goes up in TikZ.
std::string point(double x, double y) {
    return fmt::format("({}, {})", svg::number_text(x * cm_per_pixel), svg::number_text(-y * cm_per_pixel));
}

/// As large as the picture has room for: boxes are as wide as their texts are in pixels.
std::string font(const PlacedText& text) {
    const double points = text.size() * cm_per_pixel * points_per_cm;
    return fmt::format("font=\\sffamily{}\\fontsize{{{}}}{{{}}}\\selectfont",
                       text.role == TextRole::caption ? "\\bfseries" : "", svg::number_text(points),
                       svg::number_text(1.2 * points));
}

std::string tikz_level(int level) { return fmt::format("napkin level {}", std::clamp(level, 0, 4)); }

struct TexSign {
    std::string_view sign, tex;
};
/// Signs of mathematics that a picture's texts have, in TeX's own words.
constexpr TexSign tex_signs[] = {
    {"·", "\\cdot"},  {"×", "\\times"},  {"−", "-"},      {"∞", "\\infty"}, {"≤", "\\le"},    {"≥", "\\ge"},
    {"≡", "\\equiv"}, {"≠", "\\ne"},     {"→", "\\to"},   {"←", "\\gets"},  {"′", "{}'"},     {"″", "{}''"},
    {"⊕", "\\oplus"}, {"⊗", "\\otimes"}, {"±", "\\pm"},   {"√", "\\surd"},  {"Σ", "\\Sigma"}, {"Π", "\\Pi"},
    {"Δ", "\\Delta"}, {"α", "\\alpha"},  {"β", "\\beta"}, {"γ", "\\gamma"}, {"δ", "\\delta"}, {"ε", "\\epsilon"},
    {"θ", "\\theta"}, {"λ", "\\lambda"}, {"μ", "\\mu"},   {"ν", "\\nu"},    {"π", "\\pi"},    {"ρ", "\\rho"},
    {"σ", "\\sigma"}, {"τ", "\\tau"},    {"φ", "\\phi"},  {"ω", "\\omega"}, {"<", "<"},       {">", ">"},
    {"|", "|"},       {"⁰", "{}^0"},     {"¹", "{}^1"},   {"²", "{}^2"},    {"³", "{}^3"},    {"⁴", "{}^4"},
    {"⁵", "{}^5"},    {"⁶", "{}^6"},     {"⁷", "{}^7"},   {"⁸", "{}^8"},    {"⁹", "{}^9"},    {"⁻", "{}^-"},
    {"…", "\\ldots"}};

/// A character as it is to be read: its number. Pre: one character of `svg::characters`, which is well-formed UTF-8.
unsigned code_point(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
    if (character.size() == 1) return byte(0);
    unsigned out = byte(0) & (0x7FU >> character.size());
    for (std::size_t i = 1; i < character.size(); ++i) out = out << 6U | (byte(i) & 0x3FU);
    return out;
}

/// What TeX would read as a command is written out, and what inputenc may have no letter for as its number, so that
/// every text compiles.
std::string tex_text(std::string_view text) {
    std::string out;
    for (const std::string& c : svg::characters(text)) {
        const auto sign = std::find_if(std::begin(tex_signs), std::end(tex_signs),
                                       [&](const TexSign& s) { return s.sign == c; });
        if (sign != std::end(tex_signs))
            out += fmt::format("\\ensuremath{{{}}}", sign->tex);
        else if (c == "\\")
            out += "\\textbackslash{}";
        else if (c == "~" || c == "^")
            out += "\\" + c + "{}";
        else if (c == "\"")
            out += "\\textquotedbl{}";
        else if (c.size() == 1 && std::string_view("#$%&_{}").find(c[0]) != std::string_view::npos)
            out += "\\" + c;
        else if (const unsigned code = code_point(c); code >= 0x7F && !(code >= 0xC0 && code <= 0x17F))
            out += fmt::format("{{\\tiny U+{:04X}}}", code);
        else
            out += c;
    }
    return out;
}

std::string tikz_label(const svg::Label& label) {
    std::string out;
    for (const svg::Span& span : label) {
        std::string part = span.italic ? "\\textit{" + tex_text(span.text) + "}" : tex_text(span.text);
        if (span.shift == svg::Span::Shift::sub) part = "\\textsubscript{" + part + "}";
        if (span.shift == svg::Span::Shift::super) part = "\\textsuperscript{" + part + "}";
        out += part;
    }
    return out;
}

std::string tikz_wire(const PlacedWire& w) {
    const std::string style = tikz_level(w.level) + (w.is_scalar ? ", very thick, dotted" : "");
    if (w.y0 == w.y1) return fmt::format("  \\draw[{}] {} -- {};\n", style, point(w.x0, w.y0), point(w.x1, w.y1));
    const double middle = (w.x0 + w.x1) / 2;
    return fmt::format("  \\draw[{}] {} .. controls {} and {} .. {};\n", style, point(w.x0, w.y0), point(middle, w.y0),
                       point(middle, w.y1), point(w.x1, w.y1));
}

std::string mark_text(const PlacedMark& m) {
    const std::string level = tikz_level(m.level);
    switch (m.mark) {
        case Mark::dot:
            return fmt::format("  \\fill[{}] {} circle[radius={}];\n", level, point(m.x, m.y),
                               svg::number_text(m.size * cm_per_pixel));
        case Mark::end:
            return fmt::format("  \\draw[{}, very thick] {} -- {};\n", level, point(m.x, m.y - m.size),
                               point(m.x, m.y + m.size));
        case Mark::scalar:
            return fmt::format("  \\filldraw[{}, fill=white] {} circle[radius={}];\n", level, point(m.x, m.y),
                               svg::number_text((m.size - 1) * cm_per_pixel));
        case Mark::place:
            return fmt::format("  \\filldraw[{}, fill=white] {} -- {} -- {} -- {} -- cycle;\n", level,
                               point(m.x - m.size, m.y), point(m.x, m.y - m.size), point(m.x + m.size, m.y),
                               point(m.x, m.y + m.size));
        case Mark::transfer:
        case Mark::triangle:
            return fmt::format("  \\{}[{}] {} -- {} -- {} -- cycle;\n", m.mark == Mark::transfer ? "fill" : "filldraw",
                               m.mark == Mark::transfer ? level : level + ", fill=white", point(m.x - m.size, m.y - m.size),
                               point(m.x + m.size, m.y), point(m.x - m.size, m.y + m.size));
    }
    return "";
}

}  // namespace

std::string to_tikz(const Picture& picture) {
    std::string out =
        "% " + svg::cleaned(picture.title) +
        "\n"
        "\\definecolor{napkinorange}{HTML}{B85000}\\definecolor{napkingreen}{HTML}{167A34}"
        "\\definecolor{napkinblue}{HTML}{1B55D0}\\definecolor{napkinviolet}{HTML}{8B2FB8}\n"
        "\\begin{tikzpicture}[\n"
        "  napkin level 0/.style={black}, napkin level 1/.style={napkinorange}, napkin level 2/.style={napkingreen},\n"
        "  napkin level 3/.style={napkinblue}, napkin level 4/.style={napkinviolet}]\n";
    for (const PlacedSeparator& s : picture.separators)
        out += fmt::format("  \\draw[gray, dashed, very thin] {} -- {};\n", point(s.x0, s.y), point(s.x1, s.y));
    for (const PlacedBox& b : picture.boxes) {
        if (b.is_outlined)
            out += fmt::format("  \\draw[{}, fill=black!4, rounded corners=2pt] {} rectangle {};\n",
                               tikz_level(b.level), point(b.x, b.y), point(b.x + b.width, b.y + b.height));
        if (b.is_splittable)
            out += fmt::format("  \\draw[{}, dotted, thick] {} rectangle {};\n", tikz_level(b.level),
                               point(b.x - 4, b.y - 3), point(b.x + b.width + 4, b.y + b.height + 3));
    }
    for (const PlacedWire& w : picture.wires) out += tikz_wire(w);
    for (const PlacedCup& c : picture.cups) {
        const double x = c.x + c.depth * 1.33;
        out += fmt::format("  \\draw[{}] {} .. controls {} and {} .. {};\n", tikz_level(c.level), point(c.x, c.y0),
                           point(x, c.y0), point(x, c.y1), point(c.x, c.y1));
    }
    for (const PlacedMark& m : picture.marks) out += mark_text(m);
    for (const PlacedParenthesis& p : picture.parentheses) {
        const double bend = p.x + (p.opens ? -1 : 1) * (p.is_loop ? 9 : 5);
        out += fmt::format("  \\draw {} .. controls {} and {} .. {};\n", point(p.x, p.y0), point(bend, p.y0 + 6),
                           point(bend, p.y1 - 6), point(p.x, p.y1));
    }
    for (const PlacedSample& s : picture.samples)
        out += fmt::format("  \\draw[{}, very thick] {} -- {};\n", tikz_level(s.level), point(s.x, s.y),
                           point(s.x + s.width, s.y));
    for (const PlacedText& t : picture.texts)
        out += fmt::format("  \\node[{}, {}{}inner sep=1pt{}] at {} {{{}}};\n", font(t),
                           t.level > 0 ? tikz_level(t.level) + ", " : "", t.is_centred ? "" : "anchor=west, ",
                           t.role == TextRole::wire ? ", fill=white" : "", point(t.x, t.y - 4), tikz_label(t.label));
    return out + "\\end{tikzpicture}\n";
}

}  // namespace napkin::draw
