// Tokens to AST. After an error the parser goes on with the next line, so that all errors of a text come at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syntax/ast.hpp"
#include "syntax/codes.hpp"
#include "syntax/lexer.hpp"

namespace napkin {

/// Reads a whole text. Errors go to `diagnostics`; the module holds what could be read.
Module parse_module(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics);

/// Reads schedule items that stand in a text of their own, as the command line gives them: "group q=192".
std::vector<ScheduleItem> parse_schedule(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics);

/// Reads the tokens of one statement from left to right. After an error nothing is left to read.
class LineParser {
public:
    LineParser(const std::shared_ptr<const Source>& source, const LogicalLine& line, Diagnostics& diagnostics)
        : source_(source), tokens_(line.tokens), diagnostics_(diagnostics), quiet_(line.broken) {}

    /// A whole expression, reductions and calls in prefix form included. On an error failed() is true.
    AstNode expression();
    /// "[i, j + 1, ..]"
    std::vector<AstNode> indices();
    /// The next tokens as a statement of their own; they are read.
    LogicalLine take(std::size_t count);

    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] bool at_end() const { return peek().kind == TokenKind::end; }
    [[nodiscard]] const Token& peek(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }
    [[nodiscard]] bool is(std::string_view symbol, std::size_t ahead = 0) const;
    [[nodiscard]] bool is_word(std::string_view word, std::size_t ahead = 0) const;
    [[nodiscard]] bool begins_operand(std::size_t ahead = 0) const;
    const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
    bool accept(std::string_view symbol);
    /// Takes the symbol or reports that it is missing.
    bool expect(std::string_view symbol);
    bool accept_word(std::string_view word);
    /// Takes a whole number of at least 0, or reports what stands there.
    std::int64_t whole_number(const std::string& what);
    /// Takes a name that is no reserved word or reports what stands there.
    AstWord name(const std::string& what);
    /// Reports whatever is left on the line.
    void finish();

    [[nodiscard]] SourceRange range(const Token& t) const { return {source_, t.begin, t.end}; }
    [[nodiscard]] SourceRange range_from(std::uint32_t begin) const {
        return {source_, begin, at_ > 0 ? tokens_[at_ - 1].end : begin};
    }
    /// Whether what was read can be relied on, now that the statement is at its end.
    [[nodiscard]] bool good() const { return !failed_ && !quiet_; }
    void fail(Code code, SourceRange where, std::string message, std::string expected = {}, std::string hint = {}) {
        fail(napkin::name(code), std::move(where), std::move(message), std::move(expected), std::move(hint));
    }
    /// With the code of an error that the language itself does not have.
    void fail(std::string code, SourceRange where, std::string message, std::string expected = {}, std::string hint = {});

private:
    AstNode binary(int least);
    AstNode unary();
    AstNode power();
    AstNode operand();
    AstNode call_or_prefix(const AstWord& name);
    /// grad(f)(…): the call of a diagram that is made from another, whose name is what was written, "grad(f)".
    AstNode call_of_gradient(const AstCall& made);
    AstNode indexed(const Token& name);
    bool prefix_follows(std::string_view name, const std::vector<AstNode>& arguments) const;
    AstNode make(AstNode::Variant v, std::uint32_t begin);
    AstNode make_binary(BinaryOp op, AstNode left, AstNode right);
    AstNode nothing() { return make(AstNumber{}, peek().begin); }
    std::string what_stands_here() const;

    std::shared_ptr<const Source> source_;
    const std::vector<Token>& tokens_;
    Diagnostics& diagnostics_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool quiet_ = false;  ///< the line's error is reported
    bool failed_ = false;
};

/// Reads an array with its axes and type, and where it may have one, its default value.
AstArray parse_array(LineParser& parser, const std::string& what, bool may_have_default, Diagnostics& diagnostics);

/// Reads one line of a schedule block: choices, or the kernel of which the next lines are.
void parse_schedule_line(LineParser& parser, std::string& kernel, std::vector<ScheduleItem>& out, Diagnostics& diagnostics);

/// Words that cannot name anything.
bool is_reserved(std::string_view word);

}  // namespace napkin
