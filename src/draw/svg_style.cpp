// The one style sheet of all pictures. Each colour is written twice, first as it is and then as a variable: readers of
// SVG that know no variables keep the first, which is the light one.
#include <fmt/format.h>

#include <array>

#include "draw/svg.hpp"

namespace napkin::svg {
namespace {

struct Colour {
    std::string_view name, light, dark;
};

// Text and lines have a contrast of at least 4.5 to the paper in light and in dark. There are two exceptions: "faint",
// of rulers and grids, is no text, and "rule", of lines between arrays, has at least 3. Levels are the paper's: black,
// orange, green, blue, and one more for hierarchies that are deeper.
constexpr std::array<Colour, 18> colours = {{
    {"paper", "#ffffff", "#16181d"},
    {"ink", "#16181d", "#f2f3f5"},
    {"muted", "#5b6270", "#a9b0bd"},
    {"faint", "#c9ced6", "#4a505c"},
    {"panel", "#f4f5f7", "#22262e"},
    {"level-0", "#16181d", "#f2f3f5"},
    {"level-1", "#b85000", "#ff9d4d"},
    {"level-2", "#167a34", "#58d07c"},
    {"level-3", "#1b55d0", "#7aa8ff"},
    {"level-4", "#8b2fb8", "#d39bf5"},
    {"accent-0", "#1b55d0", "#7aa8ff"},
    {"accent-1", "#b85000", "#ff9d4d"},
    {"accent-2", "#167a34", "#58d07c"},
    {"accent-3", "#8b2fb8", "#d39bf5"},
    {"accent-4", "#b3204d", "#ff8fab"},
    {"accent-5", "#0b7285", "#4fd0e0"},
    {"shade", "#e6e9ee", "#2e333d"},
    {"rule", "#868d9b", "#787f8d"},
}};

std::string variables(bool dark) {
    std::string out;
    for (const Colour& colour : colours)
        out += fmt::format(" --{}: {};", colour.name, dark ? colour.dark : colour.light);
    return out;
}

std::string rule(std::string_view selector, std::string_view property, const Colour& colour) {
    return fmt::format("svg.napkin {0} {{ {1}: {2}; {1}: var(--{3}); }}\n", selector, property, colour.light, colour.name);
}

std::string made_style_sheet() {
    std::string out;
    out += fmt::format("svg.napkin {{{} }}\n", variables(false));
    out += fmt::format("@media (prefers-color-scheme: dark) {{ svg.napkin {{{} }} }}\n", variables(true));
    out += fmt::format("svg.napkin.light, .light svg.napkin {{{} }}\n", variables(false));
    out += fmt::format("svg.napkin.dark, .dark svg.napkin {{{} }}\n", variables(true));
    // Printed on paper, a picture is light.
    out += fmt::format("@media print {{ svg.napkin {{{} }} }}\n", variables(false));
    out += "svg.napkin { background: #ffffff; background: var(--paper); max-width: 100%; height: auto; }\n";
    out += fmt::format(
        "svg.napkin text {{ font-family: \"Helvetica Neue\", Helvetica, Arial, \"Liberation Sans\", \"DejaVu Sans\", "
        "sans-serif; font-size: {}px; fill: #16181d; fill: var(--ink); stroke: none; }}\n",
        text_size);
    out +=
        "svg.napkin line, svg.napkin path, svg.napkin polyline { fill: none; stroke-width: 1.5; stroke-linecap: round; "
        "}\n";
    for (const Colour& colour : colours) {
        out += rule(fmt::format(".{}", colour.name), "stroke", colour);
        out += rule(fmt::format(".fill-{}", colour.name), "fill", colour);
        out += rule(fmt::format("text.text-{}", colour.name), "fill", colour);
    }
    out += fmt::format(
        "svg.napkin rect.panel, svg.napkin polygon.panel {{ fill: {0}; fill: var(--panel); stroke: {1}; stroke: "
        "var(--faint); }}\n",
        colours[4].light, colours[3].light);
    out += fmt::format("svg.napkin text.small {{ font-size: {}px; }}\n", small_text_size);
    out +=
        // Sizes of PlacedText::size: a page whose policy forbids style attributes has them, too.
        "svg.napkin text.wire-label { font-size: 13px; }\n"
        "svg.napkin text.relation { font-size: 20px; }\n"
        "svg.napkin text.strong { font-weight: bold; }\n"
        "svg.napkin text.italic { font-style: italic; }\n"
        "svg.napkin .thin { stroke-width: 1; }\n"
        "svg.napkin .wire { stroke-width: 1.5; }\n"
        "svg.napkin .thick { stroke-width: 2.5; }\n"
        "svg.napkin .dashed { stroke-dasharray: 6 4; }\n"
        "svg.napkin .dotted { stroke-dasharray: 0.5 4; }\n"
        "svg.napkin .no-fill { fill: none; }\n"
        "svg.napkin .no-stroke { stroke: none; }\n"
        // Charts.
        "svg.napkin.chart text { font-size: 12px; }\n"
        "svg.napkin.chart text.small { font-size: 10px; }\n"
        "svg.napkin.chart text.big { font-size: 14px; font-weight: bold; }\n"
        "svg.napkin .tint { fill-opacity: 0.2; stroke-width: 1; }\n"
        "svg.napkin .wash { fill-opacity: 0.1; }\n"
        "svg.napkin .hatch { stroke-width: 0.8; stroke-opacity: 0.75; }\n"
        "svg.napkin .cell { stroke: #8a8f9e; stroke-width: 0.6; }\n"
        "svg.napkin text.on-cell { fill: #16181d; }\n"
        // Legible where lines pass behind it.
        "svg.napkin text.halo { paint-order: stroke; stroke: #ffffff; stroke: var(--paper); stroke-width: 3; "
        "stroke-linejoin: round; }\n"
        "svg.napkin .lit { stroke-width: 3.5; }\n"
        "svg.napkin text.lit { font-weight: bold; }\n";
    return out;
}

}  // namespace

const std::string& style_sheet() {
    static const std::string sheet = made_style_sheet();
    return sheet;
}

}  // namespace napkin::svg
