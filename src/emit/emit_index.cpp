#include "emit/emit_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>

#include "support/result.hpp"

namespace napkin::writers {
namespace {

std::int64_t whole(const Expr& e) {
    const auto* c = as<Constant>(e);
    internal_check(c != nullptr, "emit: an index holds a size");
    return static_cast<std::int64_t>(c->value);
}

std::string text_of(const Expr& e, const CoordinateText& coordinate, const ElementText& element) {
    if (const auto* i = as<AxisIndex>(e)) return coordinate(i->axis);
    if (const auto* r = as<Read>(e)) return element(*r);
    if (const auto* u = as<Unary>(e)) return fmt::format("-({})", text_of(u->a, coordinate, element));
    const auto* b = as<Binary>(e);
    if (!b) return std::to_string(whole(e));
    const std::string x = text_of(b->a, coordinate, element), y = text_of(b->b, coordinate, element);
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

BoundsText bounds_of(const Frame& frame, const Expr& e, int scope, bool padded) {
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

std::string index_in_tile(const Frame& frame, const Index& index, int scope) {
    const auto begin = [&](AxisId axis) {
        return frame.span(axis, scope).begins ? frame.axis(axis).begin : std::string("0");
    };
    const auto local = [&](AxisId axis) {
        return frame.span(axis, scope).tile == 1 ? std::string("0") : frame.axis(axis).local;
    };
    const auto sum = [](const std::string& a, const std::string& b) {
        return a == "0" ? b : b == "0" ? a : fmt::format("({} + {})", a, b);
    };
    const auto whole_in_tile = [&](const Expr& e) -> std::optional<std::string> {
        const auto* b = as<Binary>(e);
        const auto* axis = b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) ? as<AxisIndex>(b->a) : nullptr;
        const auto* divisor = axis ? as<Constant>(b->b) : nullptr;
        if (!divisor) return std::nullopt;
        const std::int64_t c = whole(b->b), tile = frame.span(axis->axis, scope).tile;
        const auto of = [&](const std::string& x) {
            const CoordinateText same = [&](AxisId) { return x; };
            return x == "0" ? x : text_of(e, same, {});
        };
        if (c % tile == 0)
            return b->op == BinaryOp::floor_div ? of(begin(axis->axis)) : sum(of(begin(axis->axis)), local(axis->axis));
        if (tile % c == 0)
            return b->op == BinaryOp::mod ? of(local(axis->axis)) : sum(of(begin(axis->axis)), of(local(axis->axis)));
        return std::nullopt;
    };
    // Other parts are printed as they are, with these in their places.
    const std::function<std::string(const Expr&)> text = [&](const Expr& e) -> std::string {
        if (auto found = whole_in_tile(e)) return *found;
        const auto* b = as<Binary>(e);
        if (!b) return text_of(e, [&](AxisId axis) { return sum(begin(axis), local(axis)); }, {});
        // Axes stand for the two sides while the operator is printed.
        const std::string sides[] = {text(b->a), text(b->b)};
        const Expr operation = binary(b->op, axis_index(0), as<Constant>(b->b) ? b->b : axis_index(1));
        return text_of(operation, [&](AxisId side) { return sides[side]; }, {});
    };
    return text(index.value());
}

std::string index_text(const Index& index, const CoordinateText& coordinate, const ElementText& element) {
    return text_of(index.value(), coordinate, element);
}

BoundsText bounds_text(const Frame& frame, const Index& index, int scope, bool padded) {
    return bounds_of(frame, index.value(), scope, padded);
}

void write_zeros(const Frame& frame, Lines& out, VariableId variable, bool synchronizes) {
    out(fmt::format("fill({}, {}, {});", frame.name(variable), frame.layout(variable).count,
                    frame.is_whole(variable) ? whole_literal(0) : literal(0, frame.is_double)));
    if (synchronizes) out("sync();");
}

}  // namespace napkin::writers
