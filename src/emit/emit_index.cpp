#include "emit/emit_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>

#include "schedule/fragments.hpp"
#include "support/result.hpp"

namespace napkin::writers {
namespace {

std::int64_t whole(const Expr& e) {
    const auto* c = as<Constant>(e);
    internal_check(c != nullptr, "emit: an index holds a size");
    return static_cast<std::int64_t>(c->value);
}

/// Text of a part of an index in place of what is written otherwise; none: that.
using PartText = std::function<std::optional<std::string>(const Expr&)>;

std::string text_of(const Expr& e, const CoordinateText& coordinate, const ElementText& element, const PartText& part = {}) {
    if (part)
        if (auto text = part(e)) return *text;
    if (const auto* i = as<AxisIndex>(e)) return coordinate(i->axis);
    if (const auto* r = as<Read>(e)) return element(*r);
    if (const auto* u = as<Unary>(e)) return fmt::format("-({})", text_of(u->a, coordinate, element, part));
    const auto* b = as<Binary>(e);
    if (!b) return std::to_string(whole(e));
    const std::string x = text_of(b->a, coordinate, element, part), y = text_of(b->b, coordinate, element, part);
    // By a power of two both are single instructions, of which compilers see what is the same for neighbours.
    const auto* divisor = as<Constant>(b->b);
    if (divisor && divisor->value >= 1 && std::has_single_bit(static_cast<std::uint64_t>(whole(b->b)))) {
        if (b->op == BinaryOp::floor_div)
            return fmt::format("({} >> {})", x, std::countr_zero(static_cast<std::uint64_t>(whole(b->b))));
        if (b->op == BinaryOp::mod) return fmt::format("({} & {})", x, whole(b->b) - 1);
    }
    switch (b->op) {
        case BinaryOp::floor_div: return fmt::format("floor_div({}, {})", x, y);
        case BinaryOp::mod: return fmt::format("floor_mod({}, {})", x, y);
        case BinaryOp::min: return fmt::format("min_index({}, {})", x, y);
        case BinaryOp::max: return fmt::format("max_index({}, {})", x, y);
        default: return fmt::format("({} {} {})", x, name(b->op), y);
    }
}

BoundsText bounds_of(const Frame& frame, const Expr& e, ScopeId scope, bool padded) {
    if (const auto* i = as<AxisIndex>(e)) {
        const Span& span = frame.span(i->axis, scope);
        const std::string low = span.begins ? frame.axis(i->axis).begin : "0";
        const std::int64_t last = (padded ? span.padded : span.tile) - 1;
        return {low, span.begins ? fmt::format("({} + {})", low, last) : std::to_string(last)};
    }
    if (const auto* u = as<Unary>(e)) {
        const BoundsText a = bounds_of(frame, u->a, scope, padded);
        return {fmt::format("-({})", a.high), fmt::format("-({})", a.low)};
    }
    const auto* b = as<Binary>(e);
    if (!b) return {std::to_string(whole(e)), std::to_string(whole(e))};
    const BoundsText x = bounds_of(frame, b->a, scope, padded), y = bounds_of(frame, b->b, scope, padded);
    const auto both = [](const char* pattern, const std::string& p, const std::string& q) {
        return fmt::format(fmt::runtime(pattern), p, q);
    };
    switch (b->op) {
        case BinaryOp::add: return {both("({} + {})", x.low, y.low), both("({} + {})", x.high, y.high)};
        case BinaryOp::sub: return {both("({} - {})", x.low, y.high), both("({} - {})", x.high, y.low)};
        case BinaryOp::floor_div:
            return {both("floor_div({}, {})", x.low, y.low), both("floor_div({}, {})", x.high, y.low)};
        case BinaryOp::mod: return {"0", std::to_string(whole(b->b) - 1)};
        case BinaryOp::min: return {both("min_index({}, {})", x.low, y.low), both("min_index({}, {})", x.high, y.high)};
        case BinaryOp::max: return {both("max_index({}, {})", x.low, y.low), both("max_index({}, {})", x.high, y.high)};
        default: break;
    }
    // A product with a number.
    const bool left = as<Constant>(b->a) != nullptr;
    const std::int64_t factor = whole(left ? b->a : b->b);
    const BoundsText& other = left ? y : x;
    BoundsText out{fmt::format("({} * {})", factor, other.low), fmt::format("({} * {})", factor, other.high)};
    if (factor < 0) std::swap(out.low, out.high);
    return out;
}

}  // namespace

std::string index_in_tile(const Frame& frame, const Index& index, ScopeId scope) {
    const auto begin = [&](AxisId axis) {
        return frame.span(axis, scope).begins ? frame.axis(axis).begin : std::string("0");
    };
    const auto local = [&](AxisId axis) {
        return frame.span(axis, scope).tile == 1 ? std::string("0") : frame.axis(axis).local;
    };
    const auto sum = [](const std::string& a, const std::string& b) {
        return a == "0" ? b : b == "0" ? a : fmt::format("({} + {})", a, b);
    };
    const auto quotient_or_rest = [&](const Expr& e) -> std::optional<std::string> {
        const auto* b = as<Binary>(e);
        const auto* of = b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) ? as<AxisIndex>(b->a) : nullptr;
        if (!of || !as<Constant>(b->b)) return std::nullopt;
        const AxisId axis = of->axis;
        const auto part = [&](const std::string& x) { return x == "0" ? x : text_of(e, [&](AxisId) { return x; }, {}); };
        // A part of columns has one, and its own begin.
        if (const auto& parts = frame.column_parts; parts && parts->axis == axis && parts->scope == scope) {
            if (b->op != BinaryOp::floor_div || !is_one_quotient(frame, axis, whole(b->b), scope)) return std::nullopt;
            const std::string at = sum(begin(axis), fmt::format("{} * part_", parts->columns));
            return part(frame.span(axis, scope).ragged ? fmt::format("min_index({}, {})", at, frame.extent(axis) - 1) : at);
        }
        if (is_one_quotient(frame, axis, whole(b->b), scope))
            return b->op == BinaryOp::floor_div ? part(begin(axis)) : sum(part(begin(axis)), local(axis));
        if (frame.span(axis, scope).tile % whole(b->b) != 0) return std::nullopt;
        return b->op == BinaryOp::mod ? part(local(axis)) : sum(part(begin(axis)), part(local(axis)));
    };
    return text_of(index.value(), [&](AxisId axis) { return sum(begin(axis), local(axis)); }, {}, quotient_or_rest);
}

std::string index_text(const Index& index, const CoordinateText& coordinate, const ElementText& element) {
    return text_of(index.value(), coordinate, element);
}

BoundsText bounds_text(const Frame& frame, const Index& index, ScopeId scope, bool padded) {
    return bounds_of(frame, index.value(), scope, padded);
}

void write_zeros(const Frame& frame, Lines& out, VariableId variable, bool synchronizes) {
    out(fmt::format("fill({}, {}, {});", frame.name(variable), frame.layout(variable).count,
                    frame.is_whole(variable) ? whole_literal(0) : literal(0, frame.is_double)));
    if (synchronizes) out("sync();");
}

}  // namespace napkin::writers
