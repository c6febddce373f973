// Circuits as DOT: an operation is a node, a value an edge from where it is written to each place where it is read.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "draw/box_text.hpp"
#include "draw/diagram_picture.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

constexpr std::array<std::string_view, 5> dot_colours = {"black", "#b85000", "#167a34", "#1b55d0", "#8b2fb8"};
std::string_view dot_colour(int level) { return dot_colours[at(std::clamp(level, 0, 4))]; }

/// Within quotes of DOT.
std::string dot_quoted(std::string_view text) {
    std::string out = "\"";
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        if (begin > 0) out += "\\n";
        for (const char c : svg::cleaned(text.substr(begin, end - begin))) {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
        begin = end + 1;
    }
    return out + "\"";
}

std::string edge_label(const Value& value) {
    std::string out;
    for (const Wire& wire : value.wires) out += (out.empty() ? "" : "×") + plain_text(wire.label);
    out = value.name + (out.empty() ? "" : " " + out);
    if (!value.precision.empty()) out += " " + value.precision;
    return value.maintained ? "(" + out + ")" : out;
}

std::string node_label(const Operation& op) {
    const std::string own = join(
        mapped<std::string>(box_lines(op.label), [](const svg::Label& line) { return plain_text(line); }), "\n");
    switch (op.shape) {
        case Shape::transfer:
        case Shape::start:
        case Shape::along: return own.empty() ? op.description : own;
        case Shape::contraction: return own.empty() ? "Σ ·" : own;
        case Shape::copy: return "copy";
        default: return own;
    }
}

std::string_view node_shape(Shape shape) {
    switch (shape) {
        case Shape::along: return "triangle";
        case Shape::contraction: return "circle";
        case Shape::transfer: return "cds";
        case Shape::start: return "plaintext";
        default: return "box";
    }
}

}  // namespace

std::string to_dot(const Drawing& drawing) {
    std::string out = "digraph " + dot_quoted(drawing.title) +
                      " {\n  rankdir=LR;\n  node [fontname=\"Helvetica\", fontsize=11];\n" +
                      "  edge [fontname=\"Helvetica\", fontsize=10];\n";
    for (std::size_t i = 0; i < drawing.circuits.size(); ++i) {
        const Circuit& circuit = drawing.circuits[i];
        std::vector<std::string> writer(circuit.values.size());
        out += fmt::format("  subgraph cluster_{} {{\n    label={};\n", i, dot_quoted(circuit.caption));
        for (const ValueId v : circuit.inputs) {
            writer[at(v)] = fmt::format("v{}_{}", i, v);
            out += fmt::format("    {} [shape=plaintext, label={}];\n", writer[at(v)],
                               dot_quoted(circuit.values[at(v)].name));
        }
        for (std::size_t o = 0; o < circuit.operations.size(); ++o) {
            const Operation& op = circuit.operations[o];
            const std::string node = fmt::format("o{}_{}", i, o);
            writer[at(op.output)] = node;
            out += fmt::format("    {} [shape={}, color={}, style={}, label={}, tooltip={}];\n", node,
                               node_shape(op.shape), dot_quoted(dot_colour(op.level)), op.splittable ? "dotted" : "solid",
                               dot_quoted(node_label(op)), dot_quoted(op.description));
            for (const Operand& operand : op.inputs) {
                const Value& value = circuit.values[at(operand.value)];
                out += fmt::format("    {} -> {} [label={}, color={}];\n", writer[at(operand.value)], node,
                                   dot_quoted(edge_label(value)), dot_quoted(dot_colour(value.level)));
            }
        }
        for (const ValueId v : circuit.outputs) {
            const std::string end = fmt::format("e{}_{}", i, v);
            out += fmt::format("    {} [shape=plaintext, label={}];\n", end, dot_quoted(circuit.values[at(v)].name));
            out += fmt::format("    {} -> {} [label={}, color={}];\n", writer[at(v)], end,
                               dot_quoted(edge_label(circuit.values[at(v)])),
                               dot_quoted(dot_colour(circuit.values[at(v)].level)));
        }
        out += "  }\n";
    }
    return out + "}\n";
}

}  // namespace napkin::draw
