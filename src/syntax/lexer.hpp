// Text to tokens, tokens to logical lines. A statement is a line. It goes on while a bracket is open, after a line that
// ends in an operator or a comma, and before a line that begins with an operator.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "support/source.hpp"
#include "syntax/codes.hpp"

namespace napkin {

enum class TokenKind : std::uint8_t {
    name,  ///< identifier or word (and, or, not, sizes, …)
    number,
    string,  ///< between double quotes, on one line
    symbol,  ///< one of ( ) [ ] , : = + - * / ^ < > <= >= == != -> ..
    end,     ///< closes every logical line
};

struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text;  ///< in the source; without quotes for a string
    std::uint32_t begin = 0, end = 0;
    double number = 0;
    bool integer = false;       ///< a number written without point and exponent
    bool comma_inside = false;  ///< an opening bracket with a comma directly inside
    std::int64_t whole = 0;     ///< of an integer
};

inline bool is_symbol(const Token& t, std::string_view s) { return t.kind == TokenKind::symbol && t.text == s; }
inline bool is_opening(const Token& t) { return is_symbol(t, "(") || is_symbol(t, "["); }
inline bool is_closing(const Token& t) { return is_symbol(t, ")") || is_symbol(t, "]"); }

/// One statement. The last token is of kind end.
struct LogicalLine {
    std::uint32_t indent = 0;
    bool broken = false;  ///< part of it could not be read and is reported
    std::vector<Token> tokens;
};

/// Whether the text is one name, as axes and arrays have it: letters, digits and _, and no digit first.
bool is_name(std::string_view text);

/// Never fails: what cannot be read is reported and left out.
std::vector<LogicalLine> lex(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics);

/// One line of a text in which no statement goes on on the next: the characters [begin, end). It is never `broken`: who
/// reads it to its end has to look at the diagnostics. No tokens: there is nothing on it.
LogicalLine lex_line(const std::shared_ptr<const Source>& source, std::size_t begin, std::size_t end,
                     Diagnostics& diagnostics);

}  // namespace napkin
