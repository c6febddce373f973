#pragma once
// Text → Size: what to_string(Size) prints, in either form, and formulas as people write them: "2·q·d + 4·q·x·d²·M⁻¹",
// "a*c + 2*a*b*c*M^(-1/2)", "(n + 1)·d/2".
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "algebra/size.hpp"
#include "syntax/ast.hpp"

namespace napkin {

/// Where a formula stops being one (in bytes from its start), and what is wrong there.
struct SizeSyntaxError {
    std::size_t at = 0;
    std::string message;
    friend bool operator==(const SizeSyntaxError&, const SizeSyntaxError&) = default;
};

/// Sums, products (`·` or `*`), quotients by one term, powers with rational exponents (`^2`, `^-1`, `^(-1/2)`, `²`,
/// `⁻¹`) and parentheses; `−` and `-` alike. Symbols begin with a letter and go on with letters, digits, `_` and `'`.
/// Numbers are whole; 1/2 is a quotient.
std::variant<Size, SizeSyntaxError> parse_size(std::string_view text, SymbolTable& symbols);

class Reworded;
/// Size expressions as a domain of arithmetic.hpp; names are another's matter.
struct SizeArithmetic {
    using Value = Size;
    const Reworded& text;
    SymbolTable& symbols;
    [[nodiscard]] Size number(const AstNumber& n, const SourceRange& range) const;
    [[nodiscard]] Size quotient(const Size& a, const Size& b, const AstNode& divisor) const;
    [[nodiscard]] Size power(const Size& a, const Size& b, const AstNode& exponent) const;
};

}  // namespace napkin
