// Expressions, from loose to tight:
//   or < and < not < one comparison < + - < * / // % < unary minus < ^ (to the right, signed exponent) < operand
// A reduction or a call in prefix form is an operand that takes everything to its right.
#include <fmt/format.h>

#include <array>

#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "syntax/builtins.hpp"
#include "syntax/parser.hpp"

namespace napkin {
namespace {
enum Level : int { loosest, l_or, l_and, l_not, l_compare, l_sum, l_product };

struct Operator {
    std::string_view text;
    BinaryOp op;
    int level;
};
constexpr std::array operators{
    Operator{"or", BinaryOp::logical_or, l_or},
    Operator{"and", BinaryOp::logical_and, l_and},
    Operator{"<", BinaryOp::lt, l_compare},
    Operator{"<=", BinaryOp::le, l_compare},
    Operator{">", BinaryOp::gt, l_compare},
    Operator{">=", BinaryOp::ge, l_compare},
    Operator{"==", BinaryOp::eq, l_compare},
    Operator{"!=", BinaryOp::ne, l_compare},
    Operator{"+", BinaryOp::add, l_sum},
    Operator{"-", BinaryOp::sub, l_sum},
    Operator{"*", BinaryOp::mul, l_product},
    Operator{"/", BinaryOp::div, l_product},
    Operator{"//", BinaryOp::floor_div, l_product},
    Operator{"%", BinaryOp::mod, l_product},
};

const Operator* find_operator(const Token& t) {
    if (t.kind != TokenKind::symbol && t.kind != TokenKind::name) return nullptr;
    const auto at = find_if(operators, [&](const Operator& o) { return o.text == t.text; });
    return at == operators.end() ? nullptr : &*at;
}

bool is_bare_name(const AstNode& node) { return std::holds_alternative<AstName>(node.v) && !node.parentheses; }

/// Levels of recursion: brackets may take about as many as operators, since the printer puts one around the other.
constexpr int max_recursion = 2 * limits::max_nesting + 10;

}  // namespace

bool is_reserved(std::string_view word) {
    static constexpr std::array<std::string_view, 7> words{"and", "or", "not", "inf", "nan", "sizes", "schedule"};
    return contains(words, word);
}

bool LineParser::is(std::string_view symbol, std::size_t ahead) const {
    return peek(ahead).kind == TokenKind::symbol && peek(ahead).text == symbol;
}
bool LineParser::is_word(std::string_view word, std::size_t ahead) const {
    return peek(ahead).kind == TokenKind::name && peek(ahead).text == word;
}

bool LineParser::begins_operand(std::size_t ahead) const {
    const Token& t = peek(ahead);
    if (t.kind == TokenKind::number || t.kind == TokenKind::string) return true;
    if (t.kind == TokenKind::symbol) return t.text == "(";
    return t.kind == TokenKind::name && t.text != "and" && t.text != "or";
}

bool LineParser::accept(std::string_view symbol) {
    if (!is(symbol)) return false;
    ++at_;
    return true;
}

void LineParser::fail(std::string code, SourceRange where, std::string message, std::string expected, std::string hint) {
    if (!failed_ && !quiet_)
        diagnostics_.error(std::move(code), std::move(where), std::move(message), std::move(expected), std::move(hint));
    failed_ = true;
    at_ = tokens_.size() - 1;
}

std::string LineParser::what_stands_here() const {
    const Token& t = peek();
    return t.kind == TokenKind::end      ? "the end of the line"
           : t.kind == TokenKind::string ? "a string"
                                         : fmt::format("'{}'", t.text);
}

bool LineParser::expect(std::string_view symbol) {
    if (accept(symbol)) return true;
    if (failed_) return false;
    if ((symbol == ")" || symbol == "]") && begins_operand()) {
        fail(Code::missing_operator, range(peek()),
             fmt::format("an operator or a comma is missing before {}", what_stands_here()),
             fmt::format("'{}', an operator or ','", symbol));
        return false;
    }
    std::string hint;
    if (symbol == "=" && is("==")) hint = "an equation has one =; == compares";
    if (symbol == "=" && (is("+") || is("*")) && is("=", 1))
        hint = "there is no assignment; a sum over k is written sum(k) …";
    if (symbol == "=" && at_ > 0 && tokens_[0].text == "return") hint = "results are defined by their names: Y[i] = …";
    if (symbol == "(" && at_ > 0 && tokens_[0].text == "def") hint = "a definition begins with its name, without def";
    fail(Code::expected_token, range(peek()), fmt::format("{} where '{}' should stand", what_stands_here(), symbol),
         fmt::format("'{}'", symbol), hint);
    return false;
}

bool LineParser::accept_word(std::string_view word) {
    if (!is_word(word)) return false;
    ++at_;
    return true;
}

std::int64_t LineParser::whole_number(const std::string& what) {
    const Token& t = peek();
    if (t.kind == TokenKind::number && t.integer && t.whole >= 0) return next().whole;
    fail(Code::expected_token, range(t), fmt::format("{} where {} should stand", what_stands_here(), what),
         "a whole number");
    return 0;
}

LogicalLine LineParser::take(std::size_t count) {
    LogicalLine line;
    for (; count > 0 && !at_end(); --count) line.tokens.push_back(next());
    const std::uint32_t end = line.tokens.empty() ? peek().begin : line.tokens.back().end;
    line.tokens.push_back({TokenKind::end, {}, end, end});
    return line;
}

AstWord LineParser::name(const std::string& what) {
    const Token& t = peek();
    if (t.kind != TokenKind::name) {
        fail(Code::expected_name, range(t), fmt::format("{} where {} should stand", what_stands_here(), what), what);
        return {"", range(t)};
    }
    if (is_reserved(t.text)) {
        fail(Code::reserved_name, range(t),
             fmt::format("'{}' is a word of the language and cannot name anything", t.text), what);
        return {"", range(t)};
    }
    ++at_;
    return {std::string(t.text), range(t)};
}

void LineParser::finish() {
    if (failed_ || at_end()) return;
    const Token& t = peek();
    if (begins_operand()) {
        fail(Code::missing_operator, range(t), fmt::format("an operator is missing before {}", what_stands_here()),
             "an operator or the end of the line");
    } else {
        std::string hint;
        if (is("[")) hint = "all indices stand in one pair of brackets: X[i, j]";
        if (is(":")) hint = "a signature ends without a colon; types stand right after the array: X[i]: f16";
        if (is("=")) hint = "an equation has one =; == compares";
        fail(Code::trailing_input, range(t), fmt::format("'{}' after the end of the statement", t.text),
             "the end of the line", hint);
    }
}

AstNode LineParser::make(AstNode::Variant v, std::uint32_t begin) {
    AstNode node{std::move(v), range_from(begin), 1, false};
    int deepest = 0;
    const auto look = [&](const std::vector<AstNode>& children) {
        for (const AstNode& child : children) deepest = std::max(deepest, child.depth);
    };
    if (const auto* n = std::get_if<AstIndexed>(&node.v)) look(n->indices);
    if (const auto* n = std::get_if<AstCall>(&node.v)) look(n->arguments);
    if (const auto* n = std::get_if<AstPrefix>(&node.v)) look(n->operands);
    if (const auto* n = std::get_if<AstUnary>(&node.v)) look(n->operand);
    if (const auto* n = std::get_if<AstBinary>(&node.v)) look(n->operands);
    node.depth = deepest + 1;
    if (node.depth > limits::max_nesting) {
        fail(Code::nesting_too_deep, node.range, "the expression is nested too deep",
             fmt::format("at most {} operators and calls inside each other", limits::max_nesting),
             "name a part of it in an equation of its own");
    }
    return node;
}

AstNode LineParser::make_binary(BinaryOp op, AstNode left, AstNode right) {
    const std::uint32_t begin = left.range.begin;
    AstBinary binary{op, {}};
    binary.operands.push_back(std::move(left));
    binary.operands.push_back(std::move(right));
    return make(std::move(binary), begin);
}

AstNode LineParser::expression() {
    if (++depth_ > max_recursion) {
        fail(Code::nesting_too_deep, range(peek()), "the expression is nested too deep",
             fmt::format("at most {} levels", limits::max_nesting), "name a part of it in an equation of its own");
    }
    AstNode node = binary(loosest);
    --depth_;
    return node;
}

AstNode LineParser::binary(int least) {
    AstNode left = [&] {
        if (least <= l_not && is_word("not")) {
            const std::uint32_t begin = next().begin;
            AstUnary negation{UnaryOp::logical_not, {}};
            if (++depth_ > max_recursion)
                fail(Code::nesting_too_deep, range(peek()), "the expression is nested too deep", "");
            negation.operand.push_back(binary(l_not));
            --depth_;
            return make(std::move(negation), begin);
        }
        return unary();
    }();
    while (!failed_) {
        const Operator* op = find_operator(peek());
        if (!op || op->level < std::max(least, static_cast<int>(l_or))) break;
        next();
        AstNode right = binary(op->level + 1);
        left = make_binary(op->op, std::move(left), std::move(right));
        if (op->level != l_compare || failed_) continue;
        const Operator* again = find_operator(peek());
        if (again && again->level == l_compare) {
            fail(Code::chained_comparison, range(peek()), fmt::format("'{}' after another comparison", peek().text),
                 "one comparison", "write a < b and b < c");
        }
    }
    return left;
}

AstNode LineParser::unary() {
    if (!is("-")) return power();
    const Token& minus = next();
    // A minus sign directly before a numeral belongs to the constant, except under a power: -2^2 is -(2^2).
    const bool literal = peek().kind == TokenKind::number || is_word("inf") || is_word("nan");
    if (literal && !is("^", 1)) {
        const Token& t = next();
        const double value = t.kind == TokenKind::number ? t.number
                             : t.text == "inf"           ? HUGE_VAL
                                                         : std::numeric_limits<double>::quiet_NaN();
        const auto whole = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(t.whole));
        return make(AstNumber{-value, t.integer, whole}, minus.begin);
    }
    if (++depth_ > max_recursion) fail(Code::nesting_too_deep, range(peek()), "the expression is nested too deep", "");
    AstUnary negation{UnaryOp::neg, {}};
    negation.operand.push_back(unary());
    --depth_;
    return make(std::move(negation), minus.begin);
}

AstNode LineParser::power() {
    AstNode base = operand();
    if (failed_ || !is("^")) return base;
    next();
    if (++depth_ > max_recursion) fail(Code::nesting_too_deep, range(peek()), "the expression is nested too deep", "");
    AstNode exponent = unary();
    --depth_;
    return make_binary(BinaryOp::pow, std::move(base), std::move(exponent));
}

AstNode LineParser::operand() {
    if (failed_) return nothing();
    const Token& t = peek();
    if (t.kind == TokenKind::number) {
        next();
        if (t.integer && t.whole < 0) {
            fail(Code::number_out_of_range, range(t), fmt::format("{} does not fit 64 bits", t.text),
                 "a whole number of at most 9223372036854775807",
                 fmt::format("with a point it is a real number: {}.0", t.text));
            return nothing();
        }
        return make(AstNumber{t.number, t.integer, t.whole}, t.begin);
    }
    if (t.kind == TokenKind::string) {
        next();
        return make(AstString{std::string(t.text)}, t.begin);
    }
    if (is("(")) {
        next();
        AstNode node = expression();
        if (!failed_ && is(",")) {
            fail(Code::misplaced_tuple, range(peek()), "a comma between parentheses that belong to no call", "')'",
                 "indices stand in brackets: X[i, j]");
        }
        expect(")");
        node.parentheses = true;
        return node;
    }
    if (is("..")) {
        fail(Code::ellipsis_misuse, range(t), "'..' outside of an array's indices", "an expression",
             "'..' stands for the axes of the called diagram: f(X[b, ..])");
        return nothing();
    }
    if (t.kind == TokenKind::name && t.text == "inf") {
        next();
        return make(AstNumber{HUGE_VAL, false}, t.begin);
    }
    if (t.kind == TokenKind::name && t.text == "nan") {
        next();
        return make(AstNumber{std::numeric_limits<double>::quiet_NaN(), false}, t.begin);
    }
    if (t.kind == TokenKind::name && !is_reserved(t.text)) {
        next();
        if (is("(")) return call_or_prefix({std::string(t.text), range(t)});
        if (is("[")) return indexed(t);
        return make(AstName{std::string(t.text)}, t.begin);
    }
    std::string hint;
    if (is_word("not")) hint = "put parentheses around the negation: (not a)";
    if (is("+")) hint = "there is no unary plus";
    if (is("[")) hint = "there are no lists; an array's indices follow its name: X[i]";
    fail(Code::expected_expression, range(t), fmt::format("{} where an expression should stand", what_stands_here()),
         "an array, an axis, a number or a call", hint);
    return nothing();
}

AstNode LineParser::indexed(const Token& name) {
    return make(AstIndexed{{std::string(name.text), range(name)}, indices()}, name.begin);
}

std::vector<AstNode> LineParser::indices() {
    std::vector<AstNode> out;
    expect("[");
    while (!failed_ && !is("]")) {
        if (is("..")) {
            const Token& t = next();
            out.push_back(make(AstEllipsis{}, t.begin));
        } else {
            out.push_back(expression());
        }
        if (!accept(",")) break;
    }
    expect("]");
    return out;
}

bool LineParser::prefix_follows(std::string_view name, const std::vector<AstNode>& arguments) const {
    if (begins_operand()) return peek().kind != TokenKind::string;
    // sum(k) -x cannot be a difference, for sum(k) alone is nothing; max(a, b) - 1 is one.
    if (!is("-")) return false;
    if (name == "sum" || name == "prod" || name == "argmax" || name == "argmin") return true;
    if (name == "max" || name == "min") return arguments.size() == 1;
    // softmax(x) -S[q, x]: a sign stands at what it belongs to, an operator between its operands.
    const bool names_only = !arguments.empty() && all_of(arguments, is_bare_name);
    return names_only && !is_builtin(name) && peek().begin > tokens_[at_ - 1].end && peek(1).begin == peek().end &&
           peek(1).kind != TokenKind::number;
}

AstNode LineParser::call_of_gradient(const AstCall& made) {
    std::string text = gradient_prefix;
    for (const AstNode& argument : made.arguments) {
        if (!is_bare_name(argument)) {
            fail(Code::bad_gradient, argument.range, "grad takes a diagram, and arguments to differentiate by",
                 "names: grad(f) or grad(f, X, Y)");
            return nothing();
        }
        text += (&argument == made.arguments.data() ? "" : ", ") + std::get<AstName>(argument.v).name;
    }
    const SourceRange written = range_from(made.name.range.begin);
    if (made.arguments.empty() || !is("(")) {
        fail(Code::bad_gradient, written, "grad(f) is a diagram, which is called on arrays", "grad(f)(X, dY)");
        return nothing();
    }
    return call_or_prefix({text + ")", written});
}

AstNode LineParser::call_or_prefix(const AstWord& name) {
    AstCall call{name, {}};
    next();
    while (!failed_ && !is(")")) {
        call.arguments.push_back(expression());
        if (!accept(",")) break;
    }
    expect(")");
    if (failed_) return nothing();
    if (name.text == "grad") return call_of_gradient(call);
    if (!prefix_follows(name.text, call.arguments)) return make(std::move(call), name.range.begin);

    AstPrefix prefix{call.name, {}, {}, range_from(name.range.begin), true};
    const bool reduction = name.text == "sum" || name.text == "prod" || name.text == "argmax" || name.text == "argmin" ||
                           ((name.text == "max" || name.text == "min") && call.arguments.size() == 1);
    for (const AstNode& argument : call.arguments) {
        if (!is_bare_name(argument) && is_builtin(name.text) && !reduction) {
            fail(Code::missing_operator, range(peek()), fmt::format("an operator is missing before {}", what_stands_here()),
                 "an operator or the end of the line");
            return nothing();
        }
        if (!is_bare_name(argument) && !reduction) {
            // Whether the name means anything is known later, and is said first.
            prefix.only_axes = false;
            continue;
        }
        if (!is_bare_name(argument)) {
            fail(Code::bad_reduction, argument.range,
                 fmt::format("only axes may stand between the parentheses of {}(…) before an operand", name.text),
                 "the name of an axis", fmt::format("a {} over the axis k is written {}(k) X[k]", name.text, name.text));
            return nothing();
        }
        prefix.axes.push_back({std::get<AstName>(argument.v).name, argument.range});
    }
    if (is("(") && peek().comma_inside) {
        next();
        while (!failed_ && !is(")")) {
            prefix.operands.push_back(expression());
            if (!accept(",")) break;
        }
        expect(")");
    } else {
        prefix.operands.push_back(expression());
    }
    return make(std::move(prefix), name.range.begin);
}

}  // namespace napkin
