// The part of BodyWriter that lowers expressions to values, each operation once. A value has the precedence of its
// text, and the loops on which it depends.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "algebra/power.hpp"
#include "emit/emit_body.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_index.hpp"
#include "emit/operator_text.hpp"
#include "support/result.hpp"

namespace napkin::writers {

ValueId BodyWriter::intern(Value value) {
    std::string key = value.is_constant ? "constant " : value.pattern + (value.is_whole ? " whole" : "");
    if (value.is_constant) key += fmt::format("{:a} {}", value.constant, value.pattern);
    for (const ValueId a : value.args) key += fmt::format(",{}", a);
    const auto [it, added] = known_.try_emplace(std::move(key), static_cast<ValueId>(values_.size()));
    if (added) {
        if (value.hint.empty()) value.hint = "t";
        values_.push_back(std::move(value));
    }
    return it->second;
}

/// A constant that sizes decide: the formula's value.
ValueId BodyWriter::number_of_sizes(const Expr& formula) {
    const double value = lower::real_value(formula, frame_.extents);
    if (!frame_.numbers->vary_with(formula)) return number(value);
    return number(value, frame_.real_text(to_string(formula, expression_names(frame_)), formula));
}

ValueId BodyWriter::number(double value, const std::string& text) {
    Value v;
    v.is_constant = true;
    v.constant = value;
    v.pattern = text.empty() ? literal(value, frame_.is_double) : text;
    v.precedence = v.pattern[0] == '-' ? 3 : 4;
    return intern(std::move(v));
}

ValueId BodyWriter::op(std::string pattern, std::vector<ValueId> args, int precedence,
                       std::vector<int> argument_precedence, bool splats) {
    Value v;
    v.pattern = std::move(pattern);
    v.precedence = precedence;
    v.argument_precedence = std::move(argument_precedence);
    for (const ValueId a : args) v.vec |= at(a).vec;
    for (const ValueId a : args) {
        v.row |= at(a).row;
        v.level = std::max(v.level, at(a).level);
        v.argument_use.push_back(splats && v.vec && !at(a).vec ? (at(a).is_mask ? Use::splat_mask : Use::splat)
                                                               : Use::plain);
    }
    v.args = std::move(args);
    return intern(std::move(v));
}

ValueId BodyWriter::as_number(ValueId id) {
    if (at(id).is_whole) return op(at(id).is_small ? "real(int({0}))" : "real({0})", {id}, 4, {0});
    if (!at(id).is_mask) return id;
    return op("number<real>({0})", {id}, 4, {0});
}

ValueId BodyWriter::as_mask(ValueId id) {
    if (at(id).is_mask) return id;
    const ValueId v = at(id).is_whole ? op("{0} != 0", {id}, 0, {1}) : op("truth({0})", {id}, 4, {0});
    at(v).is_mask = true;
    return v;
}

ValueId BodyWriter::arithmetic(BinaryOp o, ValueId a, ValueId b) {
    const OperatorText text = operator_text(o);
    return op(std::string(text.pattern), {a, b}, text.precedence, {text.operands[0], text.operands[1]}, text.precedence < 1);
}

/// A GPU's division branches where its operands are extreme, and instructions do not move past that. A call of the
/// prelude does not branch. A division by a power of two is a multiplication.
ValueId BodyWriter::quotient(ValueId a, ValueId b, lower::MathForm form) {
    using lower::MathForm;
    if (form == MathForm::reciprocal) return times_reciprocal(a, b);
    if (form == MathForm::near_quotient) return call("near_quotient", {a, b});
    return frame_.in_blocks() && form == MathForm::plain ? call("divide", {a, b}) : arithmetic(BinaryOp::div, a, b);
}

/// The quotient by a divisor that loops have in common. What depends on the divisor alone is hoisted out of them.
ValueId BodyWriter::times_reciprocal(ValueId a, ValueId b) {
    const ValueId scale = call("scale_of_divisor", {b}), reciprocal = call("scaled_reciprocal", {b});
    at(scale).hint = "scale", at(reciprocal).hint = "reciprocal";
    return arithmetic(BinaryOp::mul, arithmetic(BinaryOp::mul, a, scale), reciprocal);
}

ValueId BodyWriter::call(const std::string& function, std::vector<ValueId> args) {
    std::string pattern = function + "({0}";
    for (std::size_t k = 1; k < args.size(); ++k) pattern += fmt::format(", {{{}}}", k);
    std::vector<int> precedence(args.size(), 0);
    return op(pattern + ")", std::move(args), 4, std::move(precedence), true);
}

ValueId BodyWriter::compare(BinaryOp o, ValueId a, ValueId b) {
    const ValueId v = arithmetic(o, a, b);
    at(v).is_mask = true;
    return v;
}

ValueId BodyWriter::logical(BinaryOp o, ValueId a, ValueId b) {
    a = as_mask(a), b = as_mask(b);
    const bool vec = at(a).vec || at(b).vec, is_and = o == BinaryOp::logical_and;
    const ValueId v = op(vec ? (is_and ? "{0} & {1}" : "{0} | {1}") : (is_and ? "{0} && {1}" : "{0} || {1}"), {a, b},
                         -1, {1, 1}, true);
    at(v).is_mask = true;
    return v;
}

/// Pre: the exponent has power_steps.
ValueId BodyWriter::power(ValueId base, double exponent) {
    const auto steps = power_steps(exponent);
    if (steps->has_root && steps->whole == 0) return call(steps->is_reciprocal ? "rsqrt" : "sqrt", {base});
    ValueId power = -1, square = base;
    for (int n = steps->whole; n > 0; n /= 2) {
        if (n % 2 == 1) power = power < 0 ? square : arithmetic(BinaryOp::mul, power, square);
        if (n > 1) square = arithmetic(BinaryOp::mul, square, square);
    }
    if (power < 0) return number(1);
    if (steps->has_root) power = arithmetic(BinaryOp::mul, power, call("sqrt", {base}));
    return steps->is_reciprocal ? quotient(number(1), power) : power;
}

/// factor · e^x as 2^(x·log2 e + log2 factor). `of`: the expression that is the factor.
ValueId BodyWriter::exponential(const Expr& e, double factor, const Expr& of) {
    const Expr& argument = as<Unary>(e)->a;
    const lower::MathChoice& choice = lower::choice_at(math_, e);
    const Expr by = constant(std::numbers::log2e), more = unary(UnaryOp::log2, of ? of : constant(factor));
    const auto plus = [&](ValueId x, const Expr& formula) {
        const bool is_one = factor == 1 && !(of && frame_.numbers->vary_with(of));
        return is_one ? x : arithmetic(BinaryOp::add, x, number_of_sizes(formula));
    };
    const auto scaled = [&](ValueId x, const Expr& formula) {
        return arithmetic(BinaryOp::mul, x, number_of_sizes(formula));
    };
    if (choice.operand < 0) return call("exp2", {plus(scaled(as_number(lower(argument)), by), more)});
    const auto* difference = as<Binary>(argument);
    const auto* product = as<Binary>(difference->a);
    const Expr &taken = choice.operand == 0 ? product->a : product->b, &own = choice.operand == 0 ? product->b : product->a;
    const ValueId a = as_number(lower(taken)), b = as_number(lower(difference->b));
    return call("exp2", {arithmetic(BinaryOp::sub, scaled(a, binary(BinaryOp::mul, own, by)),
                                    plus(scaled(b, by), unary(UnaryOp::neg, more)))});
}

ValueId BodyWriter::axis_index(AxisId axis, bool whole, bool from_tile) {
    const Span& span = frame_.span(axis, scope_);
    const bool is_vector = axis == atom_.vector_axis, is_row = axis == atom_.row_axis;
    const std::string sum = from_tile && span.tile > 1 ? loop_name(axis) : coordinate_sum(axis, "");
    Value v;
    v.level = span.tile > 1 ? level_of(axis) : 0;
    v.row = is_row && span.tile > 1;
    v.vec = is_vector;
    v.is_whole = whole;
    v.pattern = whole       ? fmt::format("int64_t({})", sum)
                : is_vector ? fmt::format("iota<real>() + real({})", sum)
                            : fmt::format("real({})", sum);
    v.precedence = is_vector ? 1 : 4;
    v.hint = frame_.axis(axis).local;
    return intern(std::move(v));
}

/// A pointer to the part of the address that the loops over points fix. The rows of a block are then at constant
/// distances. -1: nothing is fixed.
ValueId BodyWriter::row_pointer(VariableId variable, const Address& address) {
    const std::string offset = position(variable, address, true, Part::fixed);
    if (offset.empty()) return -1;
    Value v;
    for (const auto& [axis, c] : address.local)
        if (const int level = level_of(axis); level <= point_level_) v.level = std::max(v.level, level);
    v.is_pointer = true;
    v.is_whole = frame_.is_whole(variable);
    v.hint = frame_.name(variable) + "_row";
    v.pattern = fmt::format("{} + {}", frame_.name(variable), offset);
    return intern(std::move(v));
}

/// The axis' own coordinate at the atom's point; `lane` is the text of the lane in a vector along the axis.
std::string BodyWriter::coordinate_sum(AxisId axis, const std::string& lane) const {
    const Span& span = frame_.span(axis, scope_);
    const bool is_vector = axis == atom_.vector_axis, is_row = axis == atom_.row_axis;
    std::string sum;
    const auto add = [&](const std::string& part) { sum += part.empty() ? "" : sum.empty() ? part : " + " + part; };
    if (span.begins) add(frame_.axis(axis).begin);
    if (span.tile > 1) {
        add(loop_name(axis));
        if (is_vector && atom_.vectors > 1) add(fmt::format("{} * j", frame_.lanes));
        if (is_row && atom_.rows > 1) add("i");
        if (is_vector) add(lane);
    }
    return sum.empty() ? "0" : sum;
}

/// The same, in brackets where it is a sum.
std::string BodyWriter::coordinate(AxisId axis, const std::string& lane) const {
    const std::string sum = coordinate_sum(axis, lane);
    return sum.find(' ') == std::string::npos ? sum : "(" + sum + ")";
}

/// An element whose position is no affine form: every lane computes its own.
ValueId BodyWriter::read_by_lane(const Read& r, const Address& address) {
    Value v;
    std::set<AxisId> axes;
    std::int64_t along = 0;
    for (const auto& [axis, c] : address.local) {
        axes.insert(axis);
        if (axis == atom_.vector_axis) along = c;
    }
    for (const Address::Other& other : address.others)
        for (const AxisId axis : other.index.axes()) axes.insert(axis);
    for (const AxisId axis : axes) {
        if (frame_.span(axis, scope_).tile == 1) continue;
        v.level = std::max(v.level, level_of(axis));
        v.row |= axis == atom_.row_axis;
        v.vec |= axis == atom_.vector_axis;
    }
    std::string place = position(r.variable(), address);
    // Where all indices go on evenly, neighbours are so far apart, and the first lane's place is that of the vector.
    bool is_even = v.vec && !frame_.in_blocks();
    std::int64_t apart = along;
    for (const Address::Other& other : address.others) {
        const auto step = step_in_vector(frame_, other.index, atom_.vector_axis);
        is_even &= step.has_value(), apart += other.stride * step.value_or(0);
    }
    if (along != 0 && !is_even) place += fmt::format(" + {} * lane", along);
    for (const Address::Other& other : address.others) {
        const IntegerText index = index_text(other.index, [&](AxisId axis) {
            return IntegerText{coordinate(axis, is_even ? "" : "lane"), coordinates_of(frame_, axis, scope_)};
        });
        place += fmt::format(" + ({} - {}) * {}", index.text, other.first, other.stride);
    }
    const std::string element = fmt::format("{}[{}]", frame_.name(r.variable()), place);
    v.is_whole = frame_.is_whole(r.variable()) && !v.vec;
    if (is_even && apart == 0)
        v.pattern = fmt::format("splat(real({}))", element);
    else if (is_even && !frame_.is_whole(r.variable()))
        v.pattern = apart == 1 ? fmt::format("load(&{})", element) : fmt::format("load_strided(&{}, {})", element, apart);
    else
        v.pattern = v.vec ? fmt::format("load_each<real>([&](Index lane) {{ return real({}); }})", element) : element;
    v.hint = frame_.name(r.variable());
    return intern(std::move(v));
}

ValueId BodyWriter::read_value(const Read& r) {
    if (const auto found = in_memory_.find(r.variable()); found != in_memory_.end()) {
        Value v;
        const Element element = found->second(r);
        for (const AxisId axis : element.axes) v.level = std::max(v.level, level_of(axis));
        v.pattern = element.text;
        v.is_whole = element.is_whole;
        v.hint = frame_.name(r.variable());
        return intern(std::move(v));
    }
    if (frame_.layout(r.variable()).in_runs) return read_in_run(r);
    const Address address = frame_.address(r.variable(), r.indices, scope_);
    const auto given = given_.find(r.variable());
    if (!address.others.empty() && given == given_.end()) return read_by_lane(r, address);
    Value v;
    std::int64_t along = 0;
    for (const Address::Other& other : address.others)
        for (const AxisId axis : other.index.axes()) v.level = std::max(v.level, level_of(axis));
    for (const auto& [axis, c] : address.local) {
        v.level = std::max(v.level, level_of(axis));
        v.row |= axis == atom_.row_axis;
        if (axis == atom_.vector_axis) along = c;
    }
    v.vec = along != 0;
    if (given != given_.end()) {
        v.is_given = true;
        v.is_whole = given->second.is_whole || frame_.shape(r.variable()).register_type == DType::i32;
        v.vec |= given->second.is_vector;
        v.pattern = given->second.text;
        return intern(std::move(v));
    }
    const ValueId pointer = v.level > point_level_ ? row_pointer(r.variable(), address) : -1;
    std::string element = fmt::format("{}[{}]", frame_.name(r.variable()), position(r.variable(), address));
    if (pointer >= 0) {
        element = fmt::format("{{0}}[{}]", position(r.variable(), address, true, Part::rest));
        v.args = {pointer};
        v.argument_precedence = {4};
        v.argument_use = {Use::plain};
    }
    if (frame_.is_whole(r.variable())) {
        // Scalar code takes the integer; vectors have use only for what it is as a real number.
        v.is_whole = along == 0;
        v.pattern = along == 0   ? element
                    : along == 1 ? fmt::format("load_real<real>(&{})", element)
                                 : fmt::format("load_strided_real<real>(&{}, {})", element, along);
    } else {
        v.pattern = along == 0   ? element
                    : along == 1 ? fmt::format("load(&{})", element)
                                 : fmt::format("load_strided(&{}, {})", element, along);
    }
    v.hint = frame_.name(r.variable());
    return intern(std::move(v));
}

ValueId BodyWriter::lower_unary(const Expr& e, const Unary& u) {
    const lower::MathForm form = lower::choice_at(math_, e).form;
    if (form == lower::MathForm::nonpositive) return nonpositive_exponential(e, *as<Binary>(u.a));
    const ValueId a = lower(u.a);
    if (at(a).is_constant) return number_of_sizes(e);
    if (form == lower::MathForm::power_of_two) return exponential(e);
    if (u.op == UnaryOp::logical_not) {
        const ValueId m = as_mask(a);
        const ValueId v = op(at(m).vec && !frame_.in_blocks() ? "~{0}" : "!{0}", {m}, 3, {3});
        at(v).is_mask = true;
        return v;
    }
    const ValueId x = as_number(a);
    if (form == lower::MathForm::near_error) return call(fmt::format("near_{}", name(u.op)), {x});
    const OperatorText text = operator_text(u.op);
    return op(std::string(text.pattern), {x}, text.precedence, {text.operands[0]}, text.precedence == 4);
}

ValueId BodyWriter::nonpositive_exponential(const Expr& e, const Binary& difference) {
    const lower::MathChoice& choice = lower::choice_at(math_, e);
    ValueId a = as_number(lower(difference.a));
    if (choice.rounds_first) a = call("keep", {a});
    ValueId b = as_number(lower(difference.b));
    if (choice.rounds_second) b = call("keep", {b});
    return call("exp_nonpositive", {arithmetic(BinaryOp::sub, a, b)});
}

/// An operand of a comparison of integers. A coordinate is one, and needs no conversion.
ValueId BodyWriter::whole_operand(const Expr& e, ValueId value) {
    const auto* of = as<AxisIndex>(e);
    return of && frame_.in_blocks() && atom_.vector_axis < 0 ? axis_index(of->axis, true) : as_whole(value);
}

ValueId BodyWriter::lower_binary(const Expr& e, const Binary& b) {
    const ValueId a = lower(b.a), c = lower(b.b);
    if (at(a).is_constant && at(c).is_constant) return number_of_sizes(e);
    const bool compares = b.op >= BinaryOp::lt && b.op <= BinaryOp::ne;
    if (step_.is_whole && compares && integer_values_.kind(b.a) != Kind::real && integer_values_.kind(b.b) != Kind::real)
        return compare(b.op, whole_operand(b.a, a), whole_operand(b.b, c));
    if ((b.op == BinaryOp::floor_div || b.op == BinaryOp::mod) && is_integer(integer_values_.kind(e)) &&
        integer_values_.divides_in_lanes(b))
        return real_part(b.op, as_number(a), b.b);
    const lower::MathChoice& choice = lower::choice_at(math_, e);
    const bool is_power_of_two = choice.form == lower::MathForm::power_of_two;
    switch (b.op) {
        case BinaryOp::mul:
            if (is_power_of_two)
                return exponential(choice.operand == 0 ? b.a : b.b, choice.factor, choice.operand == 0 ? b.b : b.a);
            [[fallthrough]];
        case BinaryOp::add:
        case BinaryOp::sub: return arithmetic(b.op, as_number(a), as_number(c));
        case BinaryOp::div: return quotient(as_number(a), as_number(c), choice.form);
        case BinaryOp::floor_div: return call("floor", {arithmetic(BinaryOp::div, as_number(a), as_number(c))});
        case BinaryOp::mod: return call("fmod", {as_number(a), as_number(c)});
        case BinaryOp::pow:
            if (choice.form == lower::MathForm::products) return power(as_number(a), choice.factor);
            return is_power_of_two ? call("exp2", {as_number(c)}) : call("pow", {as_number(a), as_number(c)});
        case BinaryOp::min: return call("minimum", {as_number(a), as_number(c)});
        case BinaryOp::max: return call("maximum", {as_number(a), as_number(c)});
        case BinaryOp::logical_and:
        case BinaryOp::logical_or: return logical(b.op, a, c);
        default: return compare(b.op, as_number(a), as_number(c));
    }
}

ValueId BodyWriter::choose(ValueId condition, ValueId a, ValueId b) {
    if (at(condition).is_constant) return at(condition).constant != 0 ? a : b;
    condition = as_mask(condition);
    if (at(condition).vec || !(at(a).vec || at(b).vec)) return call("where", {condition, a, b});
    // One condition for all lanes.
    const ValueId v = op("({0} ? {1} : {2})", {condition, a, b}, 4, {1, 0, 0}, true);
    at(v).argument_use[0] = Use::plain;
    return v;
}

ValueId BodyWriter::lower(const Expr& e) {
    if (const auto it = lowered_.find(e.get()); it != lowered_.end()) return it->second;
    const Kind kind = step_.is_whole ? integer_values_.kind(e) : Kind::real;
    const bool is_number = as<Read>(e) || (as<Constant>(e) && kind == Kind::whole);
    // Small integers are computed as real numbers, except a choice between them: converting its outcome takes more than
    // choosing. Only for integers is a quotient by zero 0, and a narrower type wraps.
    const auto* quotient = as<Binary>(e);
    const bool divides = quotient && (quotient->op == BinaryOp::floor_div || quotient->op == BinaryOp::mod);
    const auto* narrowed = as<Cast>(e);
    const bool is_of_wide = narrowed && is_integer(integer_values_.kind(narrowed->a)) &&
                            !integer_values_.is_small(narrowed->a);
    if (is_integer(kind) && !is_number && (as<Select>(e) || divides || is_of_wide || !integer_values_.is_small(e))) {
        const ValueId id = lower_integer(e, kind);
        // A conversion from 32 bits takes less than one from 64.
        if (frame_.in_blocks()) at(id).is_small = integer_values_.is_small(e);
        return lowered_[e.get()] = id;
    }
    if (const lower::MathChoice& choice = lower::choice_at(math_, e); choice.form == lower::MathForm::own_column)
        return lowered_[e.get()] = with_own_column(e, *choice.sum);
    const auto visitor = [&](const auto& node) -> ValueId {
        using T = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<T, Constant>)
            return number(node.value);
        else if constexpr (std::is_same_v<T, AxisSize>)
            return number_of_sizes(e);
        else if constexpr (std::is_same_v<T, AxisIndex>)
            return axis_index(node.axis);
        else if constexpr (std::is_same_v<T, Read>)
            return read_value(node);
        else if constexpr (std::is_same_v<T, Unary>)
            return lower_unary(e, node);
        else if constexpr (std::is_same_v<T, Binary>)
            return lower_binary(e, node);
        else if constexpr (std::is_same_v<T, Cast>) {
            const ValueId a = as_number(lower(node.a));
            if (!is_float(node.type) && is_integer(integer_values_.kind(node.a)))
                return integer_values_.keeps_all(node.type, node.a) ? a : call(wrapping_function(node.type), {a});
            if (at(a).is_constant) return number_of_sizes(e);
            if (node.type == DType::f64 || (node.type == DType::f32 && !frame_.is_double)) return a;
            return call(rounding_function(node.type), {a});
        } else {
            const ValueId c = lower(node.condition);
            if (at(c).is_constant) return lower(at(c).constant != 0 ? node.a : node.b);
            return choose(c, as_number(lower(node.a)), as_number(lower(node.b)));
        }
    };
    const ValueId id = std::visit(visitor, e->v);
    lowered_[e.get()] = id;
    return id;
}

}  // namespace napkin::writers
