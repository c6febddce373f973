// The part of BodyWriter that lowers integers which real numbers may not hold: scalar code on int64_t that wraps at the
// type's width.
#include <fmt/format.h>

#include <bit>
#include <optional>

#include "algebra/scalar_function.hpp"
#include "emit/emit_body.hpp"
#include "emit/operator_text.hpp"
#include "support/result.hpp"

namespace napkin::writers {

/// The value as an integer. A real number here stands for one.
ValueId BodyWriter::as_whole(ValueId id) {
    if (at(id).is_whole) return id;
    if (at(id).is_constant) return whole(integer_literal(static_cast<std::int64_t>(at(id).constant)), {}, 4, {});
    return at(id).is_mask ? whole("int64_t({0} ? 1 : 0)", {id}, 4, {1}) : whole("int64_t({0})", {id}, 4, {0});
}

ValueId BodyWriter::whole(std::string pattern, std::vector<ValueId> args, int precedence,
                          std::vector<int> argument_precedence) {
    Value v;
    v.pattern = std::move(pattern);
    v.precedence = precedence;
    v.argument_precedence = std::move(argument_precedence);
    v.is_whole = true;
    for (const ValueId a : args) {
        v.row |= at(a).row;
        v.level = std::max(v.level, at(a).level);
        v.argument_use.push_back(Use::plain);
    }
    v.args = std::move(args);
    return intern(std::move(v));
}

/// An integer that real numbers may not hold.
ValueId BodyWriter::lower_integer(const Expr& e, Kind kind) {
    const int bits = kind == Kind::i32 ? 32 : 64;
    if (const auto* c = as<Constant>(e)) return whole(integer_literal(*whole_of(*c)), {}, 4, {});
    if (const auto* size = as<AxisSize>(e)) {
        const bool varies = frame_.vary_with({size->axis});
        return whole(varies ? fmt::format("int64_t({})", frame_.extent_text(size->axis))
                            : integer_literal(frame_.extent(size->axis)),
                     {}, 4, {});
    }
    if (const auto* index = as<AxisIndex>(e)) return axis_index(index->axis, true);
    if (const auto* u = as<Unary>(e)) {
        const ValueId a = as_whole(lower(u->a));
        if (gives_integer(u->op)) return a;
        return whole(fmt::format("whole_{}<{}>({{0}})", u->op == UnaryOp::neg ? "neg" : "abs", bits), {a}, 4, {0});
    }
    if (const auto* b = as<Binary>(e)) return lower_integer_binary(*b, kind);
    if (const auto* s = as<Select>(e)) {
        const ValueId c = as_mask(lower(s->condition)), a = as_whole(lower(s->a)), b = as_whole(lower(s->b));
        return whole("({0} ? {1} : {2})", {c, a, b}, 4, {1, 0, 0});
    }
    const auto& [type, from] = std::get<Cast>(e->v);
    const ValueId a = lower(from);
    if (is_narrow_integer(type)) return whole(fmt::format("{}({{0}})", wrapping_function(type)), {as_whole(a)}, 4, {0});
    if (is_integer(integer_values_.kind(from)))
        return bits == 64 ? as_whole(a) : whole("wrap<32>({0})", {as_whole(a)}, 4, {0});
    return whole(fmt::format("whole_of<{}>({{0}})", bits), {as_number(a)}, 4, {0});
}

/// The quotient or the rest of a small integer in the lanes of real numbers (IntegerValues::divides_in_lanes).
ValueId BodyWriter::real_part(BinaryOp op, ValueId x, const Expr& by) {
    if (const auto* choice = as<Select>(by))
        return choose(lower(choice->condition), real_part(op, x, choice->a), real_part(op, x, choice->b));
    const double n = as<Constant>(by)->value;
    if (n == 1) return op == BinaryOp::mod ? number(0) : x;
    const ValueId quotient = call("floor", {arithmetic(BinaryOp::mul, x, number(1 / n))});
    return op == BinaryOp::floor_div ? quotient
                                     : arithmetic(BinaryOp::sub, x, arithmetic(BinaryOp::mul, quotient, number(n)));
}

/// A quotient or a rest by a power of two, or by a choice between such. Both round down for negative numbers, too.
std::optional<ValueId> BodyWriter::by_powers_of_two(BinaryOp op, ValueId x, const Expr& by) {
    if (const auto* choice = as<Select>(by)) {
        const auto a = by_powers_of_two(op, x, choice->a), b = by_powers_of_two(op, x, choice->b);
        if (!a || !b) return std::nullopt;
        return whole("({0} ? {1} : {2})", {as_mask(lower(choice->condition)), *a, *b}, 4, {1, 0, 0});
    }
    const auto* c = as<Constant>(by);
    const auto n = c ? whole_of(*c) : std::nullopt;
    if (!n || *n < 1 || !std::has_single_bit(static_cast<std::uint64_t>(*n))) return std::nullopt;
    if (op == BinaryOp::mod) return whole(fmt::format("({{0}} & {})", *n - 1), {x}, 4, {1});
    return *n == 1 ? x
                   : whole(fmt::format("({{0}} >> {})", std::countr_zero(static_cast<std::uint64_t>(*n))), {x}, 4, {1});
}

ValueId BodyWriter::lower_integer_binary(const Binary& b, Kind kind) {
    const auto* of = as<AxisIndex>(b.a);
    // A tile begins at a multiple of its length.
    const auto* divisor = of && b.op == BinaryOp::mod ? as<Constant>(b.b) : nullptr;
    const bool from_tile = divisor && frame_.on_tensor_cores() && !frame_.column_parts &&
                           frame_.span(of->axis, scope_).tile % static_cast<std::int64_t>(divisor->value) == 0;
    const ValueId x = of ? axis_index(of->axis, true, from_tile) : as_whole(lower(b.a));
    if (b.op == BinaryOp::floor_div || b.op == BinaryOp::mod)
        if (const auto part = by_powers_of_two(b.op, x, b.b)) return *part;
    const ValueId y = as_whole(lower(b.b));
    const auto call_integer = [&](const char* function) {
        return whole(fmt::format("{}<{}>({{0}}, {{1}})", function, kind == Kind::i32 ? 32 : 64), {x, y}, 4, {0, 0});
    };
    switch (b.op) {
        case BinaryOp::add: return call_integer("whole_add");
        case BinaryOp::sub: return call_integer("whole_sub");
        case BinaryOp::mul: return call_integer("whole_mul");
        case BinaryOp::floor_div: return call_integer("whole_div");
        case BinaryOp::mod: return call_integer("whole_mod");
        case BinaryOp::pow: return call_integer("whole_pow");
        case BinaryOp::min: return whole("min_index({0}, {1})", {x, y}, 4, {0, 0});
        case BinaryOp::max: return whole("max_index({0}, {1})", {x, y}, 4, {0, 0});
        default: throw InternalError("emit: an operator that integers do not have");
    }
}

}  // namespace napkin::writers
