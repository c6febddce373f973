#include "emit/emit_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
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

/// Text that stands in place of a part of an index; none: the part is written as usual.
using PartText = std::function<std::optional<IntegerText>(const Expr&)>;

IntegerText text_of(const Expr& e, const CoordinateText& coordinate, const ElementText& element, const PartText& part = {}) {
    if (part)
        if (auto text = part(e)) return *text;
    const auto of = [&](const Expr& operand) { return text_of(operand, coordinate, element, part); };
    if (const auto* i = as<AxisIndex>(e)) return coordinate(i->axis);
    if (const auto* r = as<Read>(e)) return element(*r);
    if (const auto* u = as<Unary>(e)) return integer_negated(of(u->a));
    const auto* b = as<Binary>(e);
    return b ? integer_binary(b->op, of(b->a), of(b->b)) : whole_number(whole(e));
}

BoundsText bounds_of(const Frame& frame, const Expr& e, ScopeId scope, bool padded) {
    if (const auto* i = as<AxisIndex>(e)) {
        const Span& span = frame.span(i->axis, scope);
        const IntegerText low = span.begins
                                    ? IntegerText{frame.axis(i->axis).begin, coordinates_of(frame, i->axis, scope)}
                                    : whole_number(0),
                          last = whole_number((padded ? span.padded : span.tile) - 1);
        return {low, span.begins ? integer_binary(BinaryOp::add, low, last) : last};
    }
    if (const auto* u = as<Unary>(e)) {
        const BoundsText a = bounds_of(frame, u->a, scope, padded);
        return {integer_negated(a.high), integer_negated(a.low)};
    }
    const auto* b = as<Binary>(e);
    if (!b) return {whole_number(whole(e)), whole_number(whole(e))};
    const BoundsText x = bounds_of(frame, b->a, scope, padded), y = bounds_of(frame, b->b, scope, padded);
    const auto both = [&](const IntegerText& p, const IntegerText& q) { return integer_binary(b->op, p, q); };
    const auto* of = as<AxisIndex>(b->a);
    const bool is_even = of && as<Constant>(b->b) && divides_evenly(frame, of->axis, whole(b->b), scope);
    if ((b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) && most_values(frame, Index::of(e), scope) == 1)
        return {both(x.low, y.low), both(x.low, y.low)};
    switch (b->op) {
        case BinaryOp::add:
        case BinaryOp::min:
        case BinaryOp::max: return {both(x.low, y.low), both(x.high, y.high)};
        case BinaryOp::sub: return {both(x.low, y.high), both(x.high, y.low)};
        case BinaryOp::floor_div: return {both(x.low, y.low), both(x.high, y.low)};
        case BinaryOp::mod: {
            if (!is_even) return {whole_number(0), whole_number(whole(b->b) - 1)};
            const IntegerText low = both(x.low, y.low);
            return {low, integer_binary(BinaryOp::add, low, whole_number(frame.span(of->axis, scope).tile - 1))};
        }
        default: break;
    }
    // A product with a number.
    const bool left = as<Constant>(b->a) != nullptr;
    const std::int64_t factor = whole(left ? b->a : b->b);
    const BoundsText& other = left ? y : x;
    BoundsText out{both(whole_number(factor), other.low), both(whole_number(factor), other.high)};
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
    const auto quotient_or_rest = [&](const Expr& e) -> std::optional<IntegerText> {
        const auto* b = as<Binary>(e);
        const auto* of = b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) ? as<AxisIndex>(b->a) : nullptr;
        if (!of || !as<Constant>(b->b)) return std::nullopt;
        const AxisId axis = of->axis;
        const Interval coordinates = coordinates_of(frame, axis, scope);
        const auto part = [&](const std::string& x) {
            return x == "0" ? x : text_of(e, [&](AxisId) { return IntegerText{x, coordinates}; }, {}).text;
        };
        const auto found = [&](const std::string& text) {
            return IntegerText{text, apply_interval(b->op, coordinates, {whole(b->b), whole(b->b)})};
        };
        // A part of the columns has one quotient, and its own begin.
        if (const auto& parts = frame.column_parts; parts && parts->axis == axis && parts->scope == scope) {
            if (b->op != BinaryOp::floor_div || !is_one_quotient(frame, axis, whole(b->b), scope)) return std::nullopt;
            const std::string at = sum(begin(axis), fmt::format("{} * part_", parts->columns));
            return found(part(frame.span(axis, scope).ragged
                                  ? fmt::format("min_index({}, {})", at, one_less(frame.extent_text(axis)))
                                  : at));
        }
        if (is_one_quotient(frame, axis, whole(b->b), scope))
            return found(b->op == BinaryOp::floor_div ? part(begin(axis)) : sum(part(begin(axis)), local(axis)));
        if (frame.span(axis, scope).tile % whole(b->b) != 0) return std::nullopt;
        return found(b->op == BinaryOp::mod ? part(local(axis)) : sum(part(begin(axis)), part(local(axis))));
    };
    const auto coordinate = [&](AxisId axis) {
        return IntegerText{sum(begin(axis), local(axis)), coordinates_of(frame, axis, scope)};
    };
    return text_of(index.value(), coordinate, {}, quotient_or_rest).text;
}

IntegerText index_text(const Index& index, const CoordinateText& coordinate, const ElementText& element) {
    return text_of(index.value(), coordinate, element);
}

BoundsText bounds_text(const Frame& frame, const Index& index, ScopeId scope, bool padded) {
    return bounds_of(frame, index.value(), scope, padded);
}

InsideText inside_text(const BoundsText& bounds, const std::string& extent) {
    const auto& [low, high] = bounds;
    InsideText out{fmt::format("max_index({}, 0)", low.text), fmt::format("min_index({} + 1, {})", high.text, extent)};
    // A value that an Index does not hold may lie past the other end of the array.
    if (!fits_index(low.range)) out.first = fmt::format("min_index({}, {})", out.first, extent);
    if (!fits_index({high.range.low, high.range.high + 1}))
        out.end = fmt::format("max_index(min_index({}, {}) + 1, 0)", high.text, one_less(extent));
    return out;
}

void write_zeros(const Frame& frame, Lines& out, VariableId variable, bool synchronizes) {
    out(fmt::format("fill({}, {}, {});", frame.name(variable), frame.layout(variable).count,
                    frame.is_whole(variable) ? integer_literal(0) : literal(0, frame.is_double)));
    if (synchronizes) out("sync();");
}

}  // namespace napkin::writers
