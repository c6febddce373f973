#include "tile/parse_expr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace napkin {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr UnaryOp functions[] = {UnaryOp::exp,   UnaryOp::log, UnaryOp::tanh, UnaryOp::erf, UnaryOp::sqrt,
                                 UnaryOp::rsqrt, UnaryOp::abs, UnaryOp::sin,  UnaryOp::cos, UnaryOp::floor};
// Longer symbols first, so that < does not take half of <=.
constexpr BinaryOp comparisons[] = {BinaryOp::le, BinaryOp::ge, BinaryOp::eq, BinaryOp::ne, BinaryOp::lt, BinaryOp::gt};
constexpr int max_depth = 1000;

/// Precedence climbing, loosest level first; see algebra/expr_print.cpp for the levels.
class ExprParser {
public:
    ExprParser(Cursor& cursor, const NameTable& names) : at_(cursor), names_(names) {}

    Expr parse() { return disjunction(); }

private:
    Expr disjunction() {
        Expr left = conjunction();
        while (at_.take("or")) left = binary(BinaryOp::logical_or, left, conjunction());
        return left;
    }

    Expr conjunction() {
        Expr left = negation();
        while (at_.take("and")) left = binary(BinaryOp::logical_and, left, negation());
        return left;
    }

    Expr negation() {
        if (++depth_ > max_depth) at_.fail("tile-syntax", at_.position(), "the expression is nested too deeply");
        Expr result = at_.error()       ? constant(0)
                      : at_.take("not") ? unary(UnaryOp::logical_not, negation())
                                        : comparison();
        --depth_;
        return result;
    }

    Expr comparison() {
        Expr left = sum();
        for (const BinaryOp op : comparisons)
            if (at_.take(name(op))) return binary(op, left, sum());
        return left;
    }

    Expr sum() {
        Expr left = product();
        while (!at_.error() && !before_reduction()) {
            if (at_.take("+"))
                left = binary(BinaryOp::add, left, product());
            else if (at_.take("-"))
                left = binary(BinaryOp::sub, left, product());
            else
                break;
        }
        return left;
    }

    Expr product() {
        Expr left = signed_operand();
        while (!at_.error() && !before_reduction()) {
            if (at_.take("*"))
                left = binary(BinaryOp::mul, left, signed_operand());
            else if (at_.take("//"))
                left = binary(BinaryOp::floor_div, left, signed_operand());
            else if (at_.take("/"))
                left = binary(BinaryOp::div, left, signed_operand());
            else if (at_.take("%"))
                left = binary(BinaryOp::mod, left, signed_operand());
            else
                break;
        }
        return left;
    }

    Expr signed_operand() {
        if (++depth_ > max_depth) at_.fail("tile-syntax", at_.position(), "the expression is nested too deeply");
        Expr result = at_.error() ? constant(0) : minus_or_power();
        --depth_;
        return result;
    }

    Expr minus_or_power() {
        if (at_.take("-")) {
            // A sign directly before a numeral belongs to it, unless a power takes the numeral first.
            const std::size_t before = at_.position();
            if (const std::optional<double> value = numeral(); value && !at_.peek("^"))
                return constant(std::copysign(*value, -1.0));
            at_.move_to(before);
            return unary(UnaryOp::neg, signed_operand());
        }
        Expr base = operand();
        return at_.take("^") ? binary(BinaryOp::pow, base, signed_operand()) : base;
    }

    std::optional<double> numeral() {
        if (at_.take("inf")) return std::numeric_limits<double>::infinity();
        if (at_.take("nan")) return std::numeric_limits<double>::quiet_NaN();
        return at_.number();
    }

    Expr operand() {
        if (at_.error()) return constant(0);
        if (at_.take("(")) {
            Expr inside = disjunction();
            at_.expect(")");
            return inside;
        }
        if (const std::optional<double> value = numeral()) return constant(*value);
        const std::size_t begin = at_.position();
        const std::string word = at_.identifier("number, name or (");
        if (at_.error()) return constant(0);
        if (at_.peek("(")) return call(word, begin);
        if (const int axis = names_.axis(word); axis >= 0 && !at_.peek("[")) return axis_index(axis);
        const int array = names_.array(word);
        if (array < 0)
            at_.fail("unknown-variable", begin, fmt::format("no variable or axis is called {}", word), {},
                     nearest_name(word, names_.arrays));
        return read(array, parse_indices(at_, names_));
    }

    Expr call(const std::string& function, std::size_t begin) {
        at_.expect("(");
        if (function == "size") {
            const AxisId axis = parse_axis(at_, names_);
            at_.expect(")");
            return axis_size(axis);
        }
        std::vector<Expr> arguments{disjunction()};
        while (at_.take(",")) arguments.push_back(disjunction());
        at_.expect(")");
        if (arguments.size() == 1) {
            for (const UnaryOp op : functions)
                if (name(op) == function) return unary(op, arguments[0]);
            if (const auto type = dtype_from_name(function)) return cast(*type, arguments[0]);
        }
        if (arguments.size() == 2 && function == "min") return binary(BinaryOp::min, arguments[0], arguments[1]);
        if (arguments.size() == 2 && function == "max") return binary(BinaryOp::max, arguments[0], arguments[1]);
        if (arguments.size() == 3 && function == "where") return select(arguments[0], arguments[1], arguments[2]);
        at_.fail("tile-syntax", begin, fmt::format("no function {} takes {} arguments", function, arguments.size()));
        return constant(0);
    }

    /// "+ sum over x:" ends a carry.
    bool before_reduction() {
        const std::size_t before = at_.position();
        const bool joined = at_.take("+") || at_.take("*");
        const bool found = joined && (at_.take("sum") || at_.take("prod")) && at_.take("over");
        at_.move_to(before);
        return found;
    }

    Cursor& at_;
    const NameTable& names_;
    int depth_ = 0;
};

}  // namespace

std::size_t Cursor::position() {
    while (position_ < end_ && source_->text[position_] == ' ') ++position_;
    return position_;
}

std::string_view Cursor::rest() {
    const std::size_t begin = position();
    return std::string_view(source_->text).substr(begin, end_ - begin);
}

bool Cursor::at_end() { return position() == end_; }

std::string_view Cursor::word_at_position() {
    const std::string_view text = rest();
    std::size_t length = 0;
    while (length < text.size() && (is_letter(text[length]) || (length > 0 && is_digit(text[length])))) ++length;
    return text.substr(0, length);
}

bool Cursor::peek(std::string_view symbol) {
    return is_letter(symbol.front()) ? word_at_position() == symbol : rest().starts_with(symbol);
}

bool Cursor::take(std::string_view symbol) {
    const bool found = !error_ && peek(symbol);
    if (found) position_ += symbol.size();
    return found;
}

void Cursor::expect(std::string_view symbol) {
    if (!take(symbol))
        fail("tile-syntax", position(), "the tile program cannot be read here", fmt::format("`{}`", symbol));
}

std::string Cursor::identifier(const char* what) {
    const std::string word(word_at_position());
    if (word.empty())
        fail("tile-syntax", position(), "the tile program cannot be read here", fmt::format("a {}", what));
    position_ += word.size();
    return word;
}

std::int64_t Cursor::integer() {
    const std::string_view text = rest();
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{}) fail("tile-syntax", position(), "the tile program cannot be read here", "a whole number");
    position_ += static_cast<std::size_t>(end - text.data());
    return value;
}

std::optional<double> Cursor::number() {
    const std::string_view text = rest();
    if (text.empty() || !(is_digit(text[0]) || text[0] == '.')) return std::nullopt;
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{}) return std::nullopt;
    position_ += static_cast<std::size_t>(end - text.data());
    return value;
}

void Cursor::fail(const std::string& code, std::size_t begin, const std::string& message, const std::string& expected,
                  const std::string& hint) {
    if (error_) return;
    const auto end = static_cast<std::uint32_t>(std::max(position_, std::min(begin + 1, end_)));
    error_ = Diagnostic{
        code, {source_, static_cast<std::uint32_t>(begin), end}, message, expected, hint, {}, ExitCode::bad_input};
}

AxisId parse_axis(Cursor& cursor, const NameTable& names) {
    const std::size_t begin = cursor.position();
    const std::string word = cursor.identifier("name of an axis");
    const AxisId axis = cursor.error() ? -1 : names.axis(word);
    if (axis < 0)
        cursor.fail("unknown-axis", begin, fmt::format("no axis is called {}", word), {}, nearest_name(word, names.axes));
    return axis;
}

Affine parse_affine(Cursor& cursor, const NameTable& names) {
    Affine result;
    bool negative = cursor.take("-");
    do {
        const std::int64_t sign = negative ? -1 : 1;
        const std::string_view text = cursor.rest();
        const bool has_number = !text.empty() && is_digit(text[0]);
        const std::int64_t factor = has_number ? cursor.integer() : 1;
        if (has_number && !cursor.take("*"))
            result.constant += sign * factor;
        else
            result.add(parse_axis(cursor, names), sign * factor);
        negative = cursor.peek("-");
    } while (cursor.take("+") || cursor.take("-"));
    return result;
}

std::vector<Index> parse_indices(Cursor& cursor, const NameTable& names) {
    std::vector<Index> indices;
    if (!cursor.take("[") || cursor.take("]")) return indices;
    do {
        const std::size_t begin = cursor.position();
        const Expr value = parse_expr(cursor, names);
        if (!cursor.error() && !is_index(value))
            cursor.fail("tile-syntax", begin, "this cannot be an index",
                        "axes, whole numbers and elements with + - * // %");
        indices.push_back(cursor.error() ? Index(Affine{}) : Index::of(value));
    } while (cursor.take(","));
    cursor.expect("]");
    return indices;
}

Expr parse_expr(Cursor& cursor, const NameTable& names) { return ExprParser(cursor, names).parse(); }

}  // namespace napkin
