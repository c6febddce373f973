#pragma once
// Arithmetic in texts that are no programs: formulas of sizes, expressions over results. They are written otherwise
// than the language in some places (·, ², paths), are put in its words, and read by its grammar.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "syntax/ast.hpp"

namespace napkin {

/// A text in the language's words, with the place in the original of each of its bytes, and of its end.
class Reworded {
public:
    /// `piece` stands for the original's [begin, end).
    void add(std::string_view piece, std::size_t begin, std::size_t end);
    /// Throws ArithmeticError.
    [[nodiscard]] AstNode parse() const;

    [[nodiscard]] std::size_t begin(const SourceRange& range) const { return at(range.begin); }
    [[nodiscard]] std::size_t end(const SourceRange& range) const { return at(range.end); }

private:
    [[nodiscard]] std::size_t at(std::uint32_t place) const { return place < begins_.size() ? begins_[place] : end_; }
    std::string text_;
    std::vector<std::size_t> begins_;
    std::size_t end_ = 0;
};

/// In bytes of the original.
struct ArithmeticError {
    std::size_t at = 0, length = 1;
    std::string message, expected, hint;
};
[[noreturn]] void bad_arithmetic(const Reworded& text, const SourceRange& range, std::string message,
                                 std::string expected = "");

/// Sums, products, quotients, powers and signs in a domain, which says what numbers, names and calls are:
///     Value number(const AstNumber&, range), name(const AstName&, range), call(const AstCall&, range);
///     Value quotient(a, b, const AstNode& divisor), power(a, b, const AstNode& exponent)
template <class Domain>
typename Domain::Value evaluate_arithmetic(const Reworded& text, const AstNode& node, Domain& domain) {
    using Value = typename Domain::Value;
    const auto value = [&](const AstNode& n) { return evaluate_arithmetic(text, n, domain); };
    if (const auto* n = std::get_if<AstNumber>(&node.v)) return domain.number(*n, node.range);
    if (const auto* n = std::get_if<AstName>(&node.v)) return domain.name(*n, node.range);
    if (const auto* n = std::get_if<AstCall>(&node.v)) return domain.call(*n, node.range);
    const auto* u = std::get_if<AstUnary>(&node.v);
    if (u && u->op == UnaryOp::neg) return Value(-1) * value(u->operand[0]);
    if (const auto* b = std::get_if<AstBinary>(&node.v)) {
        const Value left = value(b->operands[0]), right = value(b->operands[1]);
        switch (b->op) {
            case BinaryOp::add: return left + right;
            case BinaryOp::sub: return left - right;
            case BinaryOp::mul: return left * right;
            case BinaryOp::div: return domain.quotient(left, right, b->operands[1]);
            case BinaryOp::pow: return domain.power(left, right, b->operands[1]);
            default: break;
        }
    }
    bad_arithmetic(text, node.range, "this is no arithmetic", "numbers and names with + - * / ^ and parentheses");
}

}  // namespace napkin
