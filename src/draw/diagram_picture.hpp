#pragma once
// A Neural Circuit Diagram with a place for everything in it. Printers only read it: picture_svg, picture_tikz,
// picture_text, picture_json. Coordinates are pixels, y goes down. Where a circuit is wider than a page, it is broken
// at data columns into systems under each other, as music is; every wire that goes on is labelled again.
#include <string>
#include <vector>

#include "draw/circuit.hpp"

namespace napkin::draw {

struct PlacedWire {
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< straight where y0 = y1, else a curve
    std::string axis, array, statement;     ///< of a wire that goes to an operation from elsewhere, that operation's
    int level = 0;
    bool is_scalar = false;  ///< of an array without axes
    friend bool operator==(const PlacedWire&, const PlacedWire&) = default;
};

enum class TextRole : unsigned char { wire, name, operation, bracket, caption, relation, legend, note };
struct PlacedText {
    double x = 0, y = 0;  ///< the middle of the baseline, or its start
    svg::Label label;
    TextRole role = TextRole::note;
    bool is_centred = true;
    int level = 0;
    std::string axis, array, statement, title;
    [[nodiscard]] double size() const;
    [[nodiscard]] double width() const;  ///< estimated
    friend bool operator==(const PlacedText&, const PlacedText&) = default;
};

/// A box, or the room of a sign that has no outline.
struct PlacedBox {
    double x = 0, y = 0, width = 0, height = 0;
    Shape shape = Shape::box;
    bool is_outlined = true, is_splittable = false;
    int level = 0;
    std::string statement, description;
    friend bool operator==(const PlacedBox&, const PlacedBox&) = default;
};

/// Two consumed wires that end in each other.
struct PlacedCup {
    double x = 0, y0 = 0, y1 = 0, depth = 0;
    int level = 0;
    std::string axis, statement;
    friend bool operator==(const PlacedCup&, const PlacedCup&) = default;
};

enum class Mark : unsigned char {
    dot,       ///< wires are connected: they part or meet
    end,       ///< a reduced wire ends: a bar
    scalar,    ///< a value without axes goes to every index: a ring
    place,     ///< an axis is read at places that are computed, and ends: a diamond
    transfer,  ///< a wire changes its level
    triangle,  ///< an operation along a wire; points to the right, as wide as `size`
};
struct PlacedMark {
    double x = 0, y = 0, size = 0;
    Mark mark = Mark::dot;
    int level = 0;
    std::string axis, statement;
    friend bool operator==(const PlacedMark&, const PlacedMark&) = default;
};

struct PlacedParenthesis {
    double x = 0, y0 = 0, y1 = 0;
    bool opens = true;
    bool is_loop = false;  ///< of a stream or subloop; else around a maintained value
    std::string array;
    friend bool operator==(const PlacedParenthesis&, const PlacedParenthesis&) = default;
};

/// A dashed line between two arrays.
struct PlacedSeparator {
    double x0 = 0, x1 = 0, y = 0;
    friend bool operator==(const PlacedSeparator&, const PlacedSeparator&) = default;
};

/// A sample of a level's colour in the legend.
struct PlacedSample {
    double x = 0, y = 0, width = 0;
    int level = 0;
    friend bool operator==(const PlacedSample&, const PlacedSample&) = default;
};

/// A column of the page, from the left edge of what stands in it to the right.
struct PageColumn {
    double left = 0, right = 0;
    friend bool operator==(const PageColumn&, const PageColumn&) = default;
};

struct Picture {
    std::string title, description;
    double width = 0, height = 0;
    std::vector<PageColumn> columns;
    std::vector<PlacedWire> wires;
    std::vector<PlacedText> texts;
    std::vector<PlacedBox> boxes;
    std::vector<PlacedCup> cups;
    std::vector<PlacedMark> marks;
    std::vector<PlacedParenthesis> parentheses;
    std::vector<PlacedSeparator> separators;
    std::vector<PlacedSample> samples;
    friend bool operator==(const Picture&, const Picture&) = default;
};

struct LayoutOptions {
    double page_width = 960;
    /// What is higher is folded into columns of the page's width, beside each other; 0: nothing is.
    double page_height = 0;
};
/// The height of a picture in a document, in pixels.
constexpr double document_height = 1400;
Picture picture_of(const Drawing& drawing, const LayoutOptions& options = {});

/// What a picture must not have, each as a sentence: texts on texts, boxes on boxes, wires on wires or beginning at
/// nothing, anything outside of the picture. Empty: good.
std::vector<std::string> faults_of(const Picture& picture);

// The printers.
svg::Document to_svg(const Picture& picture);
std::string to_tikz(const Picture& picture);
/// For a terminal; levels in colour, where that is wanted.
std::string to_terminal(const Picture& picture, bool color);
/// The circuits as a graph: operations are nodes, values are edges. DOT places them itself.
std::string to_dot(const Drawing& drawing);

}  // namespace napkin::draw
