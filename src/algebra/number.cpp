#include "algebra/number.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/expr_walk.hpp"
#include "algebra/scalar_function.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

constexpr std::int64_t least_i32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t largest_i32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t least_i64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest_i64 = std::numeric_limits<std::int64_t>::max();

bool is_logic(BinaryOp op) { return op == BinaryOp::logical_and || op == BinaryOp::logical_or; }

// Arithmetic modulo 2^64: overflow of signed numbers is undefined in C++, of unsigned ones it wraps.
std::uint64_t bits(std::int64_t a) { return static_cast<std::uint64_t>(a); }
std::int64_t sum(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(bits(a) + bits(b)); }
std::int64_t difference(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(bits(a) - bits(b)); }
std::int64_t product(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(bits(a) * bits(b)); }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
    std::int64_t result = 1;
    for (; exponent > 0; exponent /= 2, base = product(base, base))
        if (exponent % 2 == 1) result = product(result, base);
    return result;
}

bool compare(BinaryOp op, std::int64_t a, std::int64_t b) {
    switch (op) {
        case BinaryOp::lt: return a < b;
        case BinaryOp::le: return a <= b;
        case BinaryOp::gt: return a > b;
        case BinaryOp::ge: return a >= b;
        case BinaryOp::eq: return a == b;
        default: return a != b;
    }
}

}  // namespace

Kind kind_of(DType type) {
    if (is_float(type)) return Kind::real;
    return type == DType::i64 ? Kind::i64 : Kind::i32;
}

Kind join(Kind a, Kind b) { return std::max(a, b); }

Kind kind_of(UnaryOp op, Kind a) {
    const OfInteger of_integer = scalar_function(op).is.of_integer;
    return of_integer == OfInteger::real ? Kind::real : of_integer == OfInteger::truth ? Kind::whole : a;
}

Kind kind_of(BinaryOp op, Kind a, Kind b, const Expr& exponent) {
    if (is_comparison(op) || is_logic(op)) return Kind::whole;
    if (op == BinaryOp::div) return Kind::real;
    if (op != BinaryOp::pow) return join(a, b);
    const auto* c = as<Constant>(exponent);
    const auto n = c ? whole_of(*c) : std::nullopt;
    return n && *n >= 0 ? a : Kind::real;
}

Kind kind_of(const Constant& c) {
    const auto n = whole_of(c);
    if (!n) return Kind::real;
    return wrap(Kind::i32, *n) == *n ? Kind::whole : Kind::i64;
}

std::int64_t wrap(Kind kind, std::int64_t value) {
    return kind == Kind::i32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(bits(value))) : value;
}

std::int64_t wrap(DType type, std::int64_t value) {
    const DTypeFacts& row = facts(type);
    if (row.kind == DTypeKind::truth) return value != 0 ? 1 : 0;
    const int unused = 64 - 8 * row.bytes;
    const std::uint64_t kept = bits(value) << unused;
    return row.least < 0 ? static_cast<std::int64_t>(kept) >> unused : static_cast<std::int64_t>(kept >> unused);
}

bool is_in_range(DType type, std::int64_t value) { return value >= facts(type).least && value <= facts(type).most; }

std::int64_t whole_of(Kind kind, double value) {
    if (value != value) return 0;
    const double beyond = kind == Kind::i32 ? 0x1p31 : 0x1p63;
    if (value >= beyond) return kind == Kind::i32 ? largest_i32 : largest_i64;
    if (value < -beyond) return kind == Kind::i32 ? least_i32 : least_i64;
    return static_cast<std::int64_t>(value);
}

std::int64_t whole_of(DType type, double value) {
    const DTypeFacts& row = facts(type);
    if (row.kind == DTypeKind::truth) return value != 0 ? 1 : 0;
    return std::clamp(whole_of(Kind::i64, value), row.least, row.most);
}

std::optional<std::int64_t> whole_of(const Constant& c) {
    if (c.value != std::trunc(c.value) || std::fabs(c.value) > 0x1p63 || (c.value == 0 && std::signbit(c.value)))
        return {};
    const __int128 exact = static_cast<__int128>(c.value) + c.correction;
    if (exact < least_i64 || exact > largest_i64) return {};
    return static_cast<std::int64_t>(exact);
}

std::int64_t apply_integer(UnaryOp op, Kind kind, std::int64_t a) {
    switch (scalar_function(op).is.of_integer) {
        case OfInteger::itself: return a;
        case OfInteger::negated: return wrap(kind, difference(0, a));
        case OfInteger::size: return a < 0 ? wrap(kind, difference(0, a)) : a;
        case OfInteger::truth: return a == 0 ? 1 : 0;
        case OfInteger::real: break;
    }
    throw InternalError("a function of integers that is real");
}

std::int64_t apply_integer(BinaryOp op, Kind kind, std::int64_t a, std::int64_t b) {
    switch (op) {
        case BinaryOp::add: return wrap(kind, sum(a, b));
        case BinaryOp::sub: return wrap(kind, difference(a, b));
        case BinaryOp::mul: return wrap(kind, product(a, b));
        case BinaryOp::floor_div: return wrap(kind, floor_div(a, b));
        case BinaryOp::mod: return floor_mod(a, b);
        case BinaryOp::pow: return wrap(kind, power(a, b));
        case BinaryOp::min: return std::min(a, b);
        case BinaryOp::max: return std::max(a, b);
        case BinaryOp::logical_and: return a != 0 && b != 0 ? 1 : 0;
        case BinaryOp::logical_or: return a != 0 || b != 0 ? 1 : 0;
        case BinaryOp::div: throw InternalError("a quotient of integers is real");
        default: return compare(op, a, b) ? 1 : 0;
    }
}

std::int64_t apply_integer(ReduceOp op, Kind kind, std::int64_t a, std::int64_t b) {
    return apply_integer(pairwise(op), kind, a, b);
}

std::int64_t integer_identity(ReduceOp op, Kind kind) { return whole_of(kind, identity(op)); }

// ---- values
// ------------------------------------------------------------

Number number_of(const Constant& c) {
    const auto n = whole_of(c);
    return n ? Number::whole(kind_of(c), *n) : Number::real(c.value);
}

Number apply(UnaryOp op, const Number& a) {
    const Kind result = kind_of(op, a.kind());
    if (gives_truth(op)) return Number::whole(Kind::whole, a.truth() ? 0 : 1);
    if (result == Kind::real) return Number::real(apply(op, a.as_real()));
    return Number::whole(result, apply_integer(op, result, a.as_whole(result)));
}

Number apply(BinaryOp op, Kind result, const Number& a, const Number& b) {
    if (is_logic(op)) return Number::whole(Kind::whole, apply_integer(op, Kind::whole, a.truth(), b.truth()));
    if (is_comparison(op)) {
        if (join(a.kind(), b.kind()) == Kind::real)
            return Number::whole(Kind::whole, whole_of(Kind::whole, apply(op, a.as_real(), b.as_real())));
        return Number::whole(Kind::whole, apply_integer(op, Kind::i64, a.as_whole(Kind::i64), b.as_whole(Kind::i64)));
    }
    if (result == Kind::real) return Number::real(apply(op, a.as_real(), b.as_real()));
    return Number::whole(result, apply_integer(op, result, a.as_whole(result), b.as_whole(result)));
}

Number apply(ReduceOp op, const Number& a, const Number& b) {
    const Kind kind = join(a.kind(), b.kind());
    if (kind == Kind::real) return Number::real(apply(op, a.as_real(), b.as_real()));
    return Number::whole(kind, apply_integer(op, kind, a.as_whole(kind), b.as_whole(kind)));
}

Number identity(ReduceOp op, Kind kind) {
    return kind == Kind::real ? Number::real(identity(op)) : Number::whole(kind, integer_identity(op, kind));
}

// ---- kinds of expressions
// ------------------------------------------------------------

Kind Kinds::operator()(const Expr& e) {
    if (const auto at = known_.find(e); at != known_.end()) return at->second;
    const auto find = [&](const Expr& node) {
        if (known_.contains(node)) return;
        const auto of = [&](const Expr& child) { return known_.at(child); };
        Kind kind = Kind::i64;  // coordinates and sizes
        if (const auto* c = as<Constant>(node))
            kind = kind_of(*c);
        else if (const auto* r = as<Read>(node))
            kind = kind_of(types_(r->array));
        else if (const auto* u = as<Unary>(node))
            kind = kind_of(u->op, of(u->a));
        else if (const auto* b = as<Binary>(node))
            kind = kind_of(b->op, of(b->a), of(b->b), b->b);
        else if (const auto* s = as<Select>(node))
            kind = join(of(s->a), of(s->b));
        else if (const auto* t = as<Cast>(node))
            kind = kind_of(t->type);
        known_.emplace(node, kind);
    };
    for_each_postorder(e, find, Walk::values);
    return known_.at(e);
}

}  // namespace napkin
