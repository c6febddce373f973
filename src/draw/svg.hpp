#pragma once
// An SVG document as a value: elements with attributes, text and children, and one way to print them. Whatever a user
// named goes through `escaped`, so that no name can become markup; numbers have at most two decimals, so that a picture
// is the same on every machine.
//
// Coordinates are pixels at page width, y goes down. Colours are CSS variables of one style sheet, for light and dark.
// They follow the reader's system, unless the root, or an element around it, has the class `light` or `dark`.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace napkin::svg {

/// A piece of a label: `g` with `q` below it is {{"g", italic}, {"q", sub}}.
struct Span {
    enum class Shift : unsigned char { base, sub, super };
    std::string text;
    Shift shift = Shift::base;
    bool italic = false;
    friend bool operator==(const Span&, const Span&) = default;
};
using Label = std::vector<Span>;

enum class Anchor : unsigned char { start, middle, end };

struct Element {
    std::string tag;
    std::vector<std::pair<std::string, std::string>> attributes = {};
    std::string text = {};  ///< before the children
    std::vector<Element> children = {};

    /// Sets an attribute, which replaces one of the same name. Names are the program's own, never a user's. On a
    /// temporary, the result is returned by value, so that a chain may be assigned to what it began with.
    Element& set(std::string_view name, std::string_view value) &;
    Element& set(std::string_view name, double value) &;
    Element set(std::string_view name, std::string_view value) && { return std::move(set(name, value)); }
    Element set(std::string_view name, double value) && { return std::move(set(name, value)); }
    /// data-axis="q", for whoever looks for what a part of the picture stands for.
    Element data(std::string_view name, std::string_view value) && {
        return std::move(*this).set("data-" + std::string(name), value);
    }
    /// A tooltip, which is also what a screen reader says of the part.
    Element titled(std::string_view title) &&;
    Element& add(Element child) & { return children.emplace_back(std::move(child)); }
    Element with(Element child) && {
        children.push_back(std::move(child));
        return std::move(*this);
    }
    friend bool operator==(const Element&, const Element&) = default;
};

Element group(std::string_view classes = {});
Element line(double x1, double y1, double x2, double y2, std::string_view classes = {});
Element rect(double x, double y, double width, double height, std::string_view classes = {}, double radius = 0);
Element circle(double x, double y, double radius, std::string_view classes = {});
Element polygon(const std::vector<std::pair<double, double>>& points, std::string_view classes = {});
Element polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes = {});
/// `commands` as of the attribute d; `PathText` writes them.
Element path(std::string_view commands, std::string_view classes = {});
/// One line of text whose baseline is at y. Sizes: `text_size` unless said.
Element text(double x, double y, std::string_view content, Anchor anchor = Anchor::start, std::string_view classes = {});
Element text(double x, double y, const Label& label, Anchor anchor = Anchor::start, std::string_view classes = {});

/// The commands of a path.
class PathText {
public:
    PathText& move(double x, double y) { return point('M', {x, y}); }
    PathText& to(double x, double y) { return point('L', {x, y}); }
    PathText& cubic(double x1, double y1, double x2, double y2, double x, double y) {
        return point('C', {x1, y1, x2, y2, x, y});
    }
    PathText& close() {
        text_ += 'Z';
        return *this;
    }
    [[nodiscard]] const std::string& str() const { return text_; }

private:
    PathText& point(char command, const std::vector<double>& numbers);
    std::string text_;
};

struct Document {
    double width = 0, height = 0;
    std::string title, description;  ///< what a screen reader says of the whole
    std::string classes = {};        ///< of the root, beside `napkin`; `light` or `dark` fixes the colours
    std::string id = "napkin";       ///< a prefix of the ids in it; pages with several pictures give each its own
    std::vector<Element> definitions = {}, children = {};
    Element& add(Element child) { return children.emplace_back(std::move(child)); }
    friend bool operator==(const Document&, const Document&) = default;
};

/// As a file of its own, with the style sheet in it.
std::string to_text(const Document& document);
/// As part of an HTML page that has `style_sheet()` once: no XML declaration, no style.
std::string to_inline_text(const Document& document);

/// Classes of levels: level-0 … level-4 (stroke), fill-level-N, text-level-N.
/// Classes of inks: ink, muted, faint (stroke) and fill- and text- of each. A panel is a quiet fill with a border.
/// Classes of series: accent-0 … accent-5 and fill-accent-N.
/// Classes of lines and text: thin, wire, thick, dashed, dotted, small, strong, italic.
const std::string& style_sheet();

/// For text and attributes: & < > " ' as entities. What is no UTF-8, controls and characters that turn the direction of
/// writing become U+FFFD, blanks of every kind a space.
std::string escaped(std::string_view text);
/// The same without entities: what is shown.
std::string cleaned(std::string_view text);

/// At most two decimals, no trailing zeros, no negative zero. Pre: finite.
std::string number_text(double value);

constexpr double text_size = 14, small_text_size = 11, shifted_scale = 0.72;

/// The width of a text in the widest of the sans-serif fonts that the style sheet names, estimated: no text is wider by
/// more than some per cent.
double text_width(std::string_view text, double size = text_size);
double text_width(const Label& label, double size = text_size);

/// The label as plain text: "g_q", "x^16".
std::string plain_text(const Label& label);
/// Cut with an ellipsis to a width.
std::string shortened(std::string_view text, double width, double size = text_size);
/// The same of a name, with "…" in its middle: names that are long often begin alike.
std::string shortened_name(std::string_view name, double width, double size = text_size);

/// Characters of a text, each as its bytes; bytes that are no UTF-8 are the replacement character.
std::vector<std::string> characters(std::string_view text);

}  // namespace napkin::svg
