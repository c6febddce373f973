#include "study/arithmetic.hpp"

#include "syntax/parser.hpp"

namespace napkin {

void Reworded::add(std::string_view piece, std::size_t begin, std::size_t end) {
    text_ += piece;
    begins_.resize(text_.size(), begin);
    end_ = end;
}

AstNode Reworded::parse() const {
    const auto source = std::make_shared<const Source>(Source{"<expression>", text_});
    Diagnostics diagnostics;
    AstNode node;
    const LogicalLine line = lex_line(source, 0, text_.size(), diagnostics);
    if (line.tokens.empty()) {
        diagnostics.error(Code::expected_expression, {source, 0, 0}, "there is nothing", "a number, a name or (");
    } else {
        LineParser parser(source, line, diagnostics);
        node = parser.expression();
        parser.finish();
    }
    std::vector<Diagnostic> errors = diagnostics.take();
    if (errors.empty()) return node;
    Diagnostic& first = errors.front();
    throw ArithmeticError{begin(first.range), std::max<std::size_t>(1, end(first.range) - begin(first.range)),
                          std::move(first.message), std::move(first.expected), std::move(first.hint)};
}

void bad_arithmetic(const Reworded& text, const SourceRange& range, std::string message, std::string expected) {
    const std::size_t begin = text.begin(range);
    throw ArithmeticError{begin, std::max<std::size_t>(1, text.end(range) - begin), std::move(message),
                          std::move(expected), ""};
}

}  // namespace napkin
