#include "syntax/lexer.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/match_brackets.hpp"

namespace napkin {
namespace {
/// Characters that people paste, with what the language has for them.
struct Lookalike {
    std::string_view text, use;
};
constexpr Lookalike lookalikes[] = {
    {"×", "*"},  {"·", "*"},  {"⋅", "*"},  {"∗", "*"},   {"÷", "/"},   {"−", "-"},    {"–", "-"},    {"≤", "<="},
    {"≥", ">="}, {"≠", "!="}, {"→", "->"}, {"∑", "sum"}, {"Σ", "sum"}, {"∏", "prod"}, {"√", "sqrt"}, {"∞", "inf"},
    {"…", ".."}, {"“", "\""}, {"”", "\""}, {"²", "^2"},  {"³", "^3"},  {"∧", "and"},  {"∨", "or"},   {"¬", "not"},
};
/// Signs that other languages have, and what to do instead.
constexpr Lookalike other_signs[] = {
    {"'", "names have letters, digits and _; strings stand in double quotes"},
    {"@", "a product of matrices is written sum(k) A[i, k] * B[k, j]"},
    {"{", "the equations of a definition are indented, without braces"},
    {"}", "the equations of a definition are indented, without braces"},
    {"&", "write and"},
    {"|", "write or, or abs(x)"},
    {"!", "write not"},
    {".", "there are no members; a sum over j is written sum(j) X[i, j]"},
    {";", "one equation a line"},
};

/// What a line of a schedule begins with that names statements of a tile program, some by their number: S#2. Elsewhere
/// # begins a comment.
constexpr std::array<std::string_view, 5> kinds_of_statements{"atom", "slot", "prefetch", "pipelined", "defer"};

/// Length of the UTF-8 sequence at `at`, 0 where there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                               : first >= 0xE0 && first < 0xF0 ? 3
                               : first >= 0xF0 && first < 0xF5 ? 4
                                                               : 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80) return 0;
    }
    if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogate
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return length;
}

/// Length of one UTF-8 sequence.
std::uint32_t code_point(std::string_view sequence) {
    const auto first = static_cast<unsigned char>(sequence[0]);
    std::uint32_t code = sequence.size() == 1 ? first : first & (0x7FU >> sequence.size());
    for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
    return code;
}

/// Letters of other alphabets, and figures that stand in names: all but the blocks of signs, arrows, operators and
/// pictures.
bool is_letter_elsewhere(std::uint32_t code) {
    struct Block {
        std::uint32_t first, last;
    };
    static constexpr std::array<Block, 13> blocks{{{0xAA, 0xAA},
                                                   {0xB5, 0xB5},
                                                   {0xBA, 0xBA},
                                                   {0xC0, 0xD6},
                                                   {0xD8, 0xF6},
                                                   {0xF8, 0x1FFF},
                                                   {0x2070, 0x209C},
                                                   {0x2102, 0x214E},
                                                   {0x2C00, 0x2DFF},
                                                   {0x3041, 0xD7FF},
                                                   {0xF900, 0xFDFF},
                                                   {0xFF10, 0xFFDC},
                                                   {0x10000, 0x1DFFF}}};
    return any_of(blocks, [&](const Block& b) { return code >= b.first && code <= b.last; }) ||
           (code >= 0x20000 && code < 0x40000);
}

/// The name of a Greek letter in ASCII; empty where it is none.
std::string_view spelled_greek(std::uint32_t code) {
    static constexpr std::array<std::string_view, 25> names{
        "alpha", "beta",   "gamma",   "delta", "epsilon", "zeta",    "eta",  "theta", "iota",
        "kappa", "lambda", "mu",      "nu",    "xi",      "omicron", "pi",   "rho",   "sigma",
        "sigma", "tau",    "upsilon", "phi",   "chi",     "psi",     "omega"};
    constexpr std::uint32_t large = 0x391, small = 0x3B1;
    if (code == 0xB5) return "mu";
    if (code >= small && code < small + names.size()) return names[code - small];
    return code >= large && code < large + names.size() ? names[code - large] : std::string_view();
}

bool is_operator(std::string_view s) {
    static constexpr std::array<std::string_view, 19> operators{
        "+", "-", "*", "/", "//", "%", "^", "<", ">", "<=", ">=", "==", "!=", "=", "->", ":", "and", "or", ","};
    return contains(operators, s);
}
bool is_operator(const Token& t) {
    return (t.kind == TokenKind::symbol || t.kind == TokenKind::name) && is_operator(t.text);
}
/// Whether the line begins a statement of its own although a bracket is open before it. In that case the bracket was
/// forgotten. `deeper`: the line is indented more than the statement before it.
bool begins_statement(const std::vector<Token>& line, bool deeper) {
    if (line.empty() || line[0].kind != TokenKind::name) return false;
    if (!deeper && (line[0].text == "sizes" || line[0].text == "schedule")) return true;
    std::size_t at = 1;
    if (deeper) {
        // X[q, k]: f16 = …; an argument with a default value has no brackets.
        if (at >= line.size() || !is_symbol(line[at], "[")) return false;
        while (at < line.size() && !is_symbol(line[at], "]")) ++at;
        ++at;
        if (at + 1 < line.size() && is_symbol(line[at], ":")) at += 2;
        return at < line.size() && is_symbol(line[at], "=");
    }
    int depth = 0;
    for (const Token& t : line) {
        if (is_opening(t)) ++depth;
        if (is_closing(t)) --depth;
        if (depth < 0) return false;
        if (depth == 0 && (is_symbol(t, "=") || is_symbol(t, "->"))) return true;
    }
    return false;
}

class Lexer {
public:
    Lexer(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics)
        : source_(source), text_(source->text), diagnostics_(diagnostics) {}
    Lexer(const std::shared_ptr<const Source>& source, std::size_t begin, std::size_t end, Diagnostics& diagnostics)
        : source_(source), text_(std::string_view(source->text).substr(0, end)), diagnostics_(diagnostics), at_(begin) {}

    std::vector<LogicalLine> run() {
        if (at_ == 0 && text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // byte order mark
        while (at_ < text_.size()) physical_line();
        finish();
        return std::move(lines_);
    }

private:
    SourceRange range(std::size_t begin, std::size_t end) const {
        return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
    }
    SourceRange range(const Token& t) const { return range(t.begin, t.end); }

    void physical_line() {
        const std::size_t begin = at_;
        const std::uint32_t indent = indentation();
        std::vector<Token> tokens;
        const std::size_t before = diagnostics_.count();
        while (at_ < text_.size() && text_[at_] != '\n') token(tokens);
        const bool broken = diagnostics_.count() > before;
        if (at_ < text_.size()) ++at_;
        if (tokens.empty()) return;
        if (has_tab_) {
            if (!tab_reported_) {
                diagnostics_.error(Code::tab_indentation, range(begin, tokens[0].begin), "a tab in the indentation",
                                   "spaces; a tab has no width that everybody agrees on");
            }
            tab_reported_ = true;
        }
        if (!continues(tokens, indent)) {
            finish();
            current_.indent = indent;
            current_.broken = false;
        }
        current_.broken |= broken;
        // What is open now decides about the next line.
        for (const Token& t : tokens)
            open_ = is_opening(t) ? open_ + 1 : is_closing(t) ? std::max(0, open_ - 1) : open_;
        append(current_.tokens, tokens);
    }

    std::uint32_t indentation() {
        std::uint32_t indent = 0;
        has_tab_ = false;
        for (; at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'); ++at_) {
            has_tab_ |= text_[at_] == '\t';
            indent += text_[at_] == '\t' ? 4 : 1;
        }
        return indent;
    }

    bool continues(const std::vector<Token>& tokens, std::uint32_t indent) const {
        if (current_.tokens.empty()) return false;
        const bool deeper = indent > current_.indent;
        if (open_ > 0) return !begins_statement(tokens, deeper);
        if (is_operator(tokens[0]) || is_closing(tokens[0])) return true;
        return is_operator(current_.tokens.back()) && !begins_statement(tokens, deeper);
    }

    /// Closes the statement.
    void finish() {
        if (current_.tokens.empty()) return;
        match_brackets(current_, source_, diagnostics_);
        if (!current_.tokens.empty()) lines_.push_back(std::move(current_));
        current_.tokens.clear();
        open_ = 0;
    }

    void token(std::vector<Token>& out) {
        const char c = text_[at_];
        const std::size_t begin = at_;
        if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
        } else if (c == '#') {
            comment();
        } else if (is_letter(c)) {
            const auto letters = [&] {
                while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
            };
            letters();
            const bool numbered = !out.empty() && contains(kinds_of_statements, out[0].text) &&
                                  out.back().kind != TokenKind::symbol && at_ + 1 < text_.size() && text_[at_] == '#' &&
                                  is_digit(text_[at_ + 1]);
            if (numbered) ++at_, letters();
            push(out, TokenKind::name, begin);
        } else if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
            number(out);
        } else if (c == '"') {
            string(out);
        } else {
            symbol(out);
        }
    }

    void push(std::vector<Token>& out, TokenKind kind, std::size_t begin) {
        out.push_back({kind, text_.substr(begin, at_ - begin), static_cast<std::uint32_t>(begin),
                       static_cast<std::uint32_t>(at_)});
    }

    void comment() {
        while (at_ < text_.size() && text_[at_] != '\n') check_byte();
    }

    /// Steps over one character of free text; reports what is no text.
    void check_byte() {
        const std::size_t length = utf8_length(text_, at_);
        if (length == 0) {
            not_utf8();
        } else if (static_cast<unsigned char>(text_[at_]) < 0x20 && text_[at_] != '\t' && text_[at_] != '\r') {
            control();
        } else {
            at_ += length;
        }
    }

    void not_utf8() {
        if (!utf8_reported_) {
            diagnostics_.error(Code::not_utf8, range(at_, at_ + 1),
                               fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text_[at_])),
                               "a text file in UTF-8");
        }
        utf8_reported_ = true;
        ++at_;
    }

    void control() {
        if (!control_reported_) {
            diagnostics_.error(Code::control_character, range(at_, at_ + 1),
                               fmt::format("control character 0x{:02x}", static_cast<unsigned char>(text_[at_])),
                               "a text file");
        }
        control_reported_ = true;
        ++at_;
    }

    void number(std::vector<Token>& out) {
        const std::size_t begin = at_;
        const auto digits = [&] {
            const std::size_t from = at_;
            while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
            return at_ > from;
        };
        bool integer = true, good = true;
        digits();
        // Two points are the rest of an array's indices, not a fraction.
        if (at_ < text_.size() && text_[at_] == '.' && !(at_ + 1 < text_.size() && text_[at_ + 1] == '.')) {
            integer = false;
            ++at_;
            digits();
        }
        if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
            integer = false;
            ++at_;
            if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
            good = digits();
        }
        while (at_ < text_.size() && (is_name_character(text_[at_]) ||
                                      (text_[at_] == '.' && !(at_ + 1 < text_.size() && text_[at_ + 1] == '.')))) {
            good = false;
            ++at_;
        }
        push(out, TokenKind::number, begin);
        Token& t = out.back();
        t.integer = integer;
        if (!good) {
            const std::size_t letters = std::min(t.text.find_first_not_of("0123456789."), t.text.size());
            const bool factor = letters > 0 && letters < t.text.size() && t.text[letters] != 'e' &&
                                t.text[letters] != 'E' && t.text[letters] != 'x';
            diagnostics_.error(Code::bad_number, range(t), fmt::format("'{}' is not a number", t.text),
                               "a number such as 4, 0.5 or 1e-5",
                               factor ? fmt::format("a product needs its operator: {}*{}", t.text.substr(0, letters),
                                                    t.text.substr(letters))
                                      : "");
            return;
        }
        const auto result = std::from_chars(t.text.data(), t.text.data() + t.text.size(), t.number);
        if (integer) {
            // 2^63 is the magnitude of the least integer: whether a minus stands before it is for the parser to see.
            std::uint64_t magnitude = 0;
            const auto read = std::from_chars(t.text.data(), t.text.data() + t.text.size(), magnitude);
            if (read.ec != std::errc() || magnitude > std::uint64_t{1} << 63) {
                diagnostics_.error(Code::number_out_of_range, range(t), fmt::format("{} does not fit 64 bits", t.text),
                                   "a whole number of at most 9223372036854775807",
                                   "with a point it is a real number: " + std::string(t.text.substr(0, 20)) +
                                       (t.text.size() > 20 ? "….0" : ".0"));
                return;
            }
            t.whole = static_cast<std::int64_t>(magnitude);
        }
        if (result.ec == std::errc::result_out_of_range) {
            // Too small for a double is 0 to within what a double can say; too large is a mistake.
            const bool tiny = t.text.find('-') != std::string_view::npos || t.text[0] == '0' || t.text[0] == '.';
            t.number = 0;
            if (!tiny) {
                diagnostics_.error(Code::number_out_of_range, range(t), fmt::format("{} is too large", t.text),
                                   "at most 1.8e308", "infinity is written inf");
            }
        }
    }

    void string(std::vector<Token>& out) {
        const std::size_t begin = at_++;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') check_byte();
        const bool closed = at_ < text_.size() && text_[at_] == '"';
        const std::size_t end = at_;
        if (closed) ++at_;
        push(out, TokenKind::string, begin);
        out.back().text = text_.substr(begin + 1, end - begin - 1);
        if (!closed)
            diagnostics_.error(Code::unterminated_string, range(begin, at_), "the string does not end on its line",
                               "'\"'");
    }

    void symbol(std::vector<Token>& out) {
        const std::size_t begin = at_;
        const std::string_view rest = text_.substr(at_);
        for (const std::string_view two : {"->", "<=", ">=", "==", "!=", "//", ".."}) {
            if (rest.starts_with(two)) {
                at_ += 2;
                if (two == ".." && at_ < text_.size() && text_[at_] == '.') ++at_;  // "..." as Python has it
                push(out, TokenKind::symbol, begin);
                out.back().text = out.back().text.substr(0, 2);
                return;
            }
        }
        if (rest.starts_with("**")) {
            at_ += 2;
            push(out, TokenKind::symbol, begin);
            out.back().text = "^";
            return;
        }
        if (std::string_view("()[],:=+-*/%^<>").find(rest[0]) != std::string_view::npos) {
            ++at_;
            push(out, TokenKind::symbol, begin);
            return;
        }
        bad_character(rest);
    }

    void bad_character(std::string_view rest) {
        const std::size_t length = utf8_length(text_, at_);
        if (length == 0) return not_utf8();
        const auto byte = static_cast<unsigned char>(rest[0]);
        if (byte < 0x20 || byte == 0x7F) return control();
        std::string hint;
        for (const Lookalike& l : lookalikes) {
            if (rest.starts_with(l.text)) hint = fmt::format("write {}", l.use);
        }
        if (hint.empty() && is_letter_elsewhere(code_point(rest.substr(0, length)))) return foreign_letter(length);
        for (const Lookalike& l : other_signs) {
            if (rest[0] == l.text[0]) hint = l.use;
        }
        diagnostics_.error(Code::bad_character, range(at_, at_ + length),
                           fmt::format("'{}' has no meaning here", rest.substr(0, length)), "", std::move(hint));
        skip_run(length);
    }

    /// One error for a run of characters beyond ASCII.
    void skip_run(std::size_t length) {
        at_ += length;
        while (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x80) {
            const std::size_t next = utf8_length(text_, at_);
            if (next == 0) break;
            at_ += next;
        }
    }

    void foreign_letter(std::size_t length) {
        const std::string_view letter = text_.substr(at_, length);
        const std::string_view spelled = spelled_greek(code_point(letter));
        diagnostics_.error(Code::bad_character, range(at_, at_ + length),
                           fmt::format("names are ASCII, and '{}' is not", letter),
                           "names of the letters a to z and A to Z, digits and _",
                           spelled.empty() ? "" : fmt::format("write {}", spelled));
        skip_run(length);
    }

    std::shared_ptr<const Source> source_;
    std::string_view text_;
    Diagnostics& diagnostics_;
    std::size_t at_ = 0;
    std::vector<LogicalLine> lines_;
    LogicalLine current_;
    int open_ = 0;
    bool has_tab_ = false, tab_reported_ = false, utf8_reported_ = false, control_reported_ = false;
};

}  // namespace

bool is_name(std::string_view text) { return !text.empty() && is_letter(text[0]) && all_of(text, is_name_character); }

std::vector<LogicalLine> lex(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics) {
    if (source->text.size() > limits::max_file_bytes) {
        diagnostics.error(Code::file_too_large, {source, 0, 0}, fmt::format("the file has {} bytes", source->text.size()),
                          fmt::format("at most {}", limits::max_file_bytes));
        return {};
    }
    return Lexer(source, diagnostics).run();
}

LogicalLine lex_line(const std::shared_ptr<const Source>& source, std::size_t begin, std::size_t end,
                     Diagnostics& diagnostics) {
    std::vector<LogicalLine> lines = Lexer(source, begin, end, diagnostics).run();
    if (lines.empty()) return {};
    lines.front().broken = false;
    return std::move(lines.front());
}

}  // namespace napkin
