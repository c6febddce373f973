#include "algebra/parse_size.hpp"

#include <array>
#include <charconv>

#include "support/limits.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

constexpr std::array<std::string_view, 10> superscripts{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
constexpr std::int64_t max_exponent = 64;  ///< Size::pow takes sums no further

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
public:
    Parser(std::string_view text, SymbolTable& symbols) : text_(text), symbols_(symbols) {}

    std::variant<Size, SizeSyntaxError> run() {
        try {
            Size size = sum();
            blanks();
            if (at_ < text_.size()) fail("an operator or the end");
            return size;
        } catch (const SizeSyntaxError& error) {
            return error;
        } catch (const InternalError&) {
            // The algebra itself says that numbers pass 64 bits; here they are the text's.
            return SizeSyntaxError{at_, "numbers past 64 bits"};
        }
    }

private:
    [[noreturn]] void fail(const std::string& expected) const { throw SizeSyntaxError{at_, "expected " + expected}; }

    void blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    }
    bool take_here(std::string_view token) {
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }
    bool take(std::string_view token) {
        blanks();
        return take_here(token);
    }
    bool take_minus() { return take("-") || take("−"); }

    Size sum() {
        if (++depth_ > limits::max_nesting) fail("fewer parentheses inside each other");
        Size result = take_minus() ? Size(-1) * product() : product();
        while (true) {
            if (take("+")) {
                result += product();
            } else if (take_minus()) {
                result += Size(-1) * product();
            } else {
                break;
            }
        }
        --depth_;
        return result;
    }

    Size product() {
        Size result = power();
        while (true) {
            if (take("·") || take("*") || take("×")) {
                result *= power();
            } else if (take("/")) {
                const std::size_t divisor_at = at_;
                const Size divisor = power();
                if (divisor.terms().size() != 1) {
                    at_ = divisor_at;
                    fail("one term to divide by");
                }
                result = result / divisor;
            } else {
                return result;
            }
        }
    }

    Size power() {
        Size base = atom();
        const std::size_t exponent_at = at_;
        const auto exponent = take_here("^") ? written_exponent() : superscript();
        if (!exponent) return base;
        const bool far = *exponent > Rational(max_exponent) || *exponent < Rational(-max_exponent);
        const auto raised = far ? std::nullopt : base.pow(*exponent);
        if (!raised) {
            at_ = exponent_at;
            fail("a power that is one term or a sum of whole powers");
        }
        return *raised;
    }

    std::optional<Rational> written_exponent() {
        if (take_here("(")) {
            const auto exponent = sum().as_constant();
            if (!exponent || !take(")")) fail("a number as exponent, and )");
            return exponent;
        }
        const bool negative = take_here("-") || take_here("−");
        const Rational value = take_here("½") ? Rational(1, 2) : Rational(number());
        return negative ? Rational(0) - value : value;
    }

    std::optional<Rational> superscript() {
        const bool negative = take_here("⁻");
        std::int64_t value = 0;
        bool any = false;
        for (bool found = true; found;) {
            found = false;
            for (std::size_t digit = 0; digit < superscripts.size() && !found; ++digit) {
                if (!take_here(superscripts[digit])) continue;
                found = any = true;
                value = std::min<std::int64_t>(10 * value + static_cast<std::int64_t>(digit), 10 * max_exponent);
            }
        }
        if (negative && !any) fail("a digit above the line");
        return any ? std::optional(Rational(negative ? -value : value)) : std::nullopt;
    }

    Size atom() {
        blanks();
        if (take_here("(")) {
            Size inner = sum();
            if (!take(")")) fail(")");
            return inner;
        }
        if (at_ < text_.size() && is_digit(text_[at_])) return number();
        if (at_ >= text_.size() || !is_letter(text_[at_])) fail("a number, a symbol or (");
        const std::size_t begin = at_;
        while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '\'')) ++at_;
        return symbols_(text_.substr(begin, at_ - begin));
    }

    std::int64_t number() {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error == std::errc::result_out_of_range) fail("a number below 2^63");
        if (error != std::errc()) fail("a whole number");
        at_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }

    std::string_view text_;
    SymbolTable& symbols_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

std::variant<Size, SizeSyntaxError> parse_size(std::string_view text, SymbolTable& symbols) {
    return Parser(text, symbols).run();
}

}  // namespace napkin
