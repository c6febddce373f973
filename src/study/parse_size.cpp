#include "study/parse_size.hpp"

#include <array>
#include <cmath>

#include "study/arithmetic.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

constexpr std::int64_t max_exponent = 64;  ///< Size::pow takes sums no further

struct Spelling {
    std::string_view written, meant;
};
constexpr Spelling spellings[] = {{"·", "*"}, {"×", "*"},  {"−", "-"}, {"½", "(1/2)"},
                                  {"'", "p"}, {"\t", " "}, {"\n", " "}};
constexpr std::array<std::string_view, 11> superscripts{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "⁻"};
constexpr std::string_view digits = "0123456789-";

std::size_t superscript_at(std::string_view text, char& digit) {
    for (std::size_t i = 0; i < superscripts.size(); ++i)
        if (text.starts_with(superscripts[i])) {
            digit = digits[i];
            return superscripts[i].size();
        }
    return 0;
}

/// A prime of a name becomes a letter: what a name is called stands in the original.
Reworded reworded(std::string_view text) {
    Reworded out;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = text.substr(at);
        char digit = 0;
        if (superscript_at(rest, digit) > 0) {
            out.add("^(", at, at);
            while (const std::size_t size = superscript_at(text.substr(at), digit)) {
                out.add({&digit, 1}, at, at + size);
                at += size;
            }
            out.add(")", at, at);
            continue;
        }
        std::string_view piece = rest.substr(0, 1);
        std::size_t size = 1;
        for (const Spelling& s : spellings)
            if (rest.starts_with(s.written)) piece = s.meant, size = s.written.size();
        if (piece == "#") throw ArithmeticError{at, 1, "'#' has no meaning here", "", ""};
        out.add(piece, at, at + size);
        at += size;
    }
    return out;
}

}  // namespace

Size SizeArithmetic::number(const AstNumber& n, const SourceRange& range) const {
    if (n.integer) return n.whole;
    if (n.value != std::floor(n.value) || std::abs(n.value) > 0x1p53)
        bad_arithmetic(text, range, "a formula's numbers are whole", "a whole number");
    return static_cast<std::int64_t>(n.value);
}

Size SizeArithmetic::quotient(const Size& a, const Size& b, const AstNode& divisor) const {
    if (b.terms().size() != 1)
        bad_arithmetic(text, divisor.range, "division by " + to_string(b, symbols.names()), "one term to divide by");
    return a / b;
}

Size SizeArithmetic::power(const Size& a, const Size& b, const AstNode& exponent) const {
    const auto value = b.as_constant();
    const auto* tower = std::get_if<AstBinary>(&exponent.v);
    const bool is_tower = tower && tower->op == BinaryOp::pow && !exponent.parentheses;
    const bool far = !value || *value > Rational(max_exponent) || *value < Rational(-max_exponent);
    const auto raised = far || is_tower ? std::nullopt : a.pow(*value);
    if (!raised)
        bad_arithmetic(text, exponent.range, "a power that is no size expression",
                       "a power that is one term or a sum of whole powers");
    return *raised;
}

std::variant<Size, SizeSyntaxError> parse_size(std::string_view text, SymbolTable& symbols) {
    struct Names : SizeArithmetic {
        std::string_view original;
        Size name(const AstName&, const SourceRange& range) const {
            return symbols(original.substr(text.begin(range), text.end(range) - text.begin(range)));
        }
        Size call(const AstCall& n, const SourceRange&) const {
            bad_arithmetic(text, n.name.range, "there are no functions in a formula", "an operator");
        }
    };
    try {
        const Reworded words = reworded(text);
        Names names{{words, symbols}, text};
        return evaluate_arithmetic(words, words.parse(), names);
    } catch (const ArithmeticError& error) {
        return SizeSyntaxError{error.at, error.expected.empty() ? error.message : "expected " + error.expected};
    } catch (const InternalError&) {
        // The algebra itself says that numbers pass 64 bits; here they are the text's.
        return SizeSyntaxError{0, "numbers past 64 bits"};
    }
}

}  // namespace napkin
