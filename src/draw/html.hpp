#pragma once
// HTML as values: the tree of svg.hpp, printed as HTML has it. Whatever stands in it is text and is escaped where it is
// printed.
#include <string>
#include <string_view>
#include <vector>

#include "algebra/size.hpp"
#include "draw/svg.hpp"

namespace napkin::html {

using svg::Element;

/// `<tag class="…">text</tag>`
Element element(std::string_view tag, std::string_view text = "", std::string_view classes = "");
Element element(std::string_view tag, std::vector<Element> children, std::string_view classes = "");
/// Text between elements.
Element text(std::string_view content);
/// A picture, as part of the page.
Element picture(const svg::Document& document);
/// An element for the content of `style` or `script`, in which no entities are read. Pre: it is ours, and has no "</"
/// in it.
Element plain(std::string_view tag, std::string content);

/// A table with a caption and a row of headings; cells in the columns `to_right` are numbers. In each row the first
/// cell is its heading.
Element table(std::string_view caption, const std::vector<std::string>& heads,
              const std::vector<std::vector<Element>>& rows, const std::vector<std::size_t>& to_right = {});
Element cell(std::string_view content);

/// Text in which the names of axes and arrays are elements of their own, with data-axis or data-array, so that they can
/// be told anywhere.
struct KnownNames {
    std::vector<std::string> axes, arrays;
};
std::vector<Element> with_names(std::string_view code, const KnownNames& names);
/// Lines of code, each with an id to which links lead, `prefix` and its number; names told apart. `label`: what it is,
/// for who does not see it.
Element code_block(std::string_view code, const KnownNames& names, std::string_view prefix, std::string_view label);

/// A size as MathML, made of its terms: sums of products of powers; what has a negative exponent stands below a line.
Element math(const Size& size, const SymbolNames& names);
/// `left = right` as one formula.
Element math_equation(std::string_view left, const Size& right, const SymbolNames& names,
                      std::string_view relation = "=");

std::string to_text(const Element& element);

}  // namespace napkin::html
