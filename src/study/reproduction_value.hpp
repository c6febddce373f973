#pragma once
// Expressions over JSON results: "matmul/total/transfers_bytes / 2^20", "4*(count(chain/kernels) - 1)".
//
// A path is a result's name and then keys and positions, separated by / without blanks. It ends at a blank or a
// parenthesis. In it, `*` stands for every element, and KEY=VALUE (several joined by &) for the elements of which that
// holds. The value is the sum over those elements that have the rest of the path. Their number is count(…). The
// operators are + - * / ^, with blanks around them after a path, and parentheses.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "algebra/size.hpp"
#include "support/json.hpp"

namespace napkin {

using Results = std::map<std::string, nlohmann::json>;

struct ValueError {
    std::size_t at = 0, length = 1;  ///< in the expression, bytes
    std::string code;                ///< "bad-expression", "no-such-value"
    std::string message, expected, hint;
};

/// The numbers that a printed figure stands for.
struct PrintedFigure {
    double least = 0, most = 0;
    int decimals = 0;
};
/// A number such as 295, 3.4, 5.96e-8 or 1,024 reaches half a unit of its last digit. Behind ~ zeros at the end of a
/// whole number are no digits, so that ~200 is 150 to 250. A range such as 20–50 goes from the least of one to the most
/// of the other. Other texts, such as expressions, are nothing.
std::optional<PrintedFigure> printed_figure(std::string_view text);

/// The expression with the results' numbers; finite.
std::variant<double, ValueError> number_of(std::string_view expression, const Results& results);
/// The expression with the results' texts read as size expressions.
std::variant<Size, ValueError> formula_of(std::string_view expression, const Results& results, SymbolTable& symbols);

/// What a path alone finds, as text: one text, number or list.
std::variant<std::string, ValueError> text_of(std::string_view path, const Results& results);

/// The results that an expression names, in order.
struct ResultName {
    std::string name;
    std::size_t at = 0;
};
std::variant<std::vector<ResultName>, ValueError> names_in(std::string_view expression);

}  // namespace napkin
