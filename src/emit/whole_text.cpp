#include "emit/whole_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "support/result.hpp"

namespace napkin::writers {
namespace {

bool is_literal(const IntegerText& a) { return a.range.low == a.range.high && a.text == std::to_string(a.range.low); }

/// The text as a number of the type. Text that stands in brackets keeps its own.
std::string converted(const char* type, const std::string& text) {
    int depth = 0;
    std::size_t end = 0;  // of the bracket that opens first
    for (; end < text.size(); ++end)
        if (depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0; depth == 0) break;
    return text.front() == '(' && end + 1 == text.size() ? type + text : fmt::format("{}({})", type, text);
}

/// By a power of two both are single instructions, and compilers see which of their results neighbours share. What is
/// not negative needs no correction of C's quotients, which round towards zero.
std::string quotient_or_rest(BinaryOp op, const std::string& a, bool is_negative, const IntegerText& b) {
    if (is_literal(b) && b.range.low >= 1 && std::has_single_bit(static_cast<std::uint64_t>(b.range.low))) {
        if (op == BinaryOp::mod) return fmt::format("({} & {})", a, b.range.low - 1);
        return fmt::format("({} >> {})", a, std::countr_zero(static_cast<std::uint64_t>(b.range.low)));
    }
    if (is_literal(b) && b.range.low >= 1 && !is_negative)
        return fmt::format("({} {} {})", a, op == BinaryOp::mod ? "%" : "/", b.text);
    return fmt::format("{}({}, {})", op == BinaryOp::mod ? "floor_mod" : "floor_div", a, b.text);
}

std::string operation(BinaryOp op, const std::string& a, bool is_negative, const IntegerText& right, const std::string& b) {
    switch (op) {
        case BinaryOp::floor_div:
        case BinaryOp::mod: return quotient_or_rest(op, a, is_negative, right);
        case BinaryOp::min: return fmt::format("min_index({}, {})", a, b);
        case BinaryOp::max: return fmt::format("max_index({}, {})", a, b);
        default: return fmt::format("({} {} {})", a, name(op), b);
    }
}

/// Results may exceed 64 bits. Only sums and products do.
std::string saturating(BinaryOp op, const IntegerText& a, const IntegerText& b) {
    return fmt::format("{}_index({}, {})",
                       op == BinaryOp::add   ? "add"
                       : op == BinaryOp::sub ? "sub"
                                             : "mul",
                       a.text, b.text);
}

}  // namespace

bool fits_index(const Interval& range) {
    return range.low >= std::numeric_limits<std::int32_t>::min() && range.high <= std::numeric_limits<std::int32_t>::max();
}

Interval coordinates_of(const Frame& frame, AxisId axis, ScopeId scope) {
    const Span& span = frame.span(axis, scope);
    return {0, (span.begins ? frame.extent(axis) - 1 : 0) + span.padded};
}

IntegerText whole_number(std::int64_t value) { return {std::to_string(value), {value, value}}; }

IntegerText integer_binary(BinaryOp op, const IntegerText& a, const IntegerText& b) {
    const Interval range = apply_interval(op, a.range, b.range);
    const bool may_pass = op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul;
    if (may_pass && may_saturate(range)) return {saturating(op, a, b), range};
    if (fits_index(range) && fits_index(a.range) && fits_index(b.range))
        return {operation(op, a.text, a.range.low < 0, b, b.text), range};
    // One operand of 64 bits makes the operation one of 64 bits.
    const bool by_right = is_literal(a) && !is_literal(b);
    const auto wide = [&](const IntegerText& x) { return fits_index(x.range) ? converted("int64_t", x.text) : x.text; };
    const std::string text = operation(op, by_right ? a.text : wide(a), a.range.low < 0, b, by_right ? wide(b) : b.text);
    if (!fits_index(range)) return {text, range};
    return {converted("Index", text), range};
}

IntegerText integer_negated(const IntegerText& a) {
    const Interval range = negated(a.range);
    if (may_saturate(range)) return {fmt::format("sub_index(0, {})", a.text), range};
    if (fits_index(range) && fits_index(a.range)) return {fmt::format("-({})", a.text), range};
    return {"-" + converted(fits_index(a.range) ? "int64_t" : "", a.text), range};
}

std::string widened(const std::string& text, const Interval& results) {
    return fits_index(results) ? text : converted("int64_t", text);
}

const char* type_of(const IntegerText& text) { return fits_index(text.range) ? "Index" : "int64_t"; }

}  // namespace napkin::writers
