#pragma once
// A tree of marked-up text, of which SVG, MathML and HTML alike are made. Whatever is put into it, names of the user's among it, is text: it is
// escaped where it is written, and nowhere else.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace napkin::draw {

struct Element {
    std::string tag;  ///< empty: `text` alone
    std::vector<std::pair<std::string, std::string>> attributes;
    std::string text;  ///< stands before the children
    std::vector<Element> children;

    Element& add(Element child);  ///< what was added, valid until the next one is
    Element& with(std::string name, std::string value) &;
    Element with(std::string name, std::string value) &&;
    friend bool operator==(const Element&, const Element&) = default;
};

/// `<tag class="…">text</tag>`; no attribute where the class is empty.
Element element(std::string tag, std::string text = "", std::string classes = "");
Element text_node(std::string text);
/// The elements in the order in which they are given.
Element element(std::string tag, std::vector<Element> children, std::string classes = "");

/// Text that stands for itself between tags and within quotes: control characters and broken UTF-8 become �.
std::string escaped(std::string_view text);
/// A number with at most two decimals, and never an exponent: "12", "0.5". What is not finite is 0.
std::string number(double value);

/// Pre: tags and names of attributes are ours, not the user's. Of `style` and `script`, whose content no escape is read in, the
/// text is written as it is, and must be ours, too.
std::string to_string(const Element& element);

}  // namespace napkin::draw
