#pragma once
// HTML as values: the tree of svg.hpp, printed as HTML has it. Whatever stands in it is text and is escaped where it is
// printed.
#include <string>
#include <string_view>
#include <vector>

#include "algebra/size.hpp"
#include "draw/svg.hpp"
#include "report/print.hpp"

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

/// Text in which the names of axes and arrays are elements of their own, with data-axis or data-array, so that they can
/// be told anywhere.
struct KnownNames {
    std::vector<std::string> axes, arrays;
};
std::vector<Element> with_names(std::string_view code, const KnownNames& names);
/// A table with its title as caption. In each row the first cell is its heading, with names told apart.
Element table(const report::Table& table, const KnownNames& names = {});
/// What people read of a report. `title`: of tables that have none.
std::vector<Element> content(const report::Section& section, const KnownNames& names = {},
                             const std::string& title = "");
/// Lines of code, each with an id to which links lead, `prefix` and its number; names told apart. `label`: what it is,
/// for who does not see it.
Element code_block(std::string_view code, const KnownNames& names, std::string_view prefix, std::string_view label);

/// A size as MathML, made of its terms: sums of products of powers; what has a negative exponent stands below a line.
Element math(const Size& size, const SymbolNames& names);
std::string to_text(const Element& element);

}  // namespace napkin::html
