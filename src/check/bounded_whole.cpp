#include "check/bounded_whole.hpp"

#include <algorithm>
#include <cmath>

#include "algebra/scalar_function.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

__extension__ using Wide = __int128;

struct WideInterval {
    Wide low, high;
};

WideInterval ends_of(const BoundedWhole& a) { return {a.low, a.high}; }

/// The value with the interval that it lies in before anything wraps, in a kind or in a type.
template <class T>
BoundedWhole settled(T type, std::int64_t value, const WideInterval& x) {
    const std::int64_t low = wrap(type, static_cast<std::int64_t>(x.low)),
                       high = wrap(type, static_cast<std::int64_t>(x.high));
    // Both ends wrap as often as each other, and nothing between them does otherwise.
    if (static_cast<Wide>(high) - low != x.high - x.low) return any_whole(type, value);
    return {value, low, high};
}

template <class F>
WideInterval hull_of_corners(const BoundedWhole& a, const BoundedWhole& b, F f) {
    const auto [low, high] = std::minmax({f(Wide{a.low}, Wide{b.low}), f(Wide{a.low}, Wide{b.high}),
                                          f(Wide{a.high}, Wide{b.low}), f(Wide{a.high}, Wide{b.high})});
    return {low, high};
}

WideInterval product_of(const BoundedWhole& a, const BoundedWhole& b) {
    return hull_of_corners(a, b, [](Wide x, Wide y) { return x * y; });
}

/// The largest size of a number of the interval.
Wide size_of(const BoundedWhole& a) {
    return std::max(a.low < 0 ? -Wide{a.low} : Wide{a.low}, a.high < 0 ? -Wide{a.high} : Wide{a.high});
}

Wide floored(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

WideInterval quotient_of(const BoundedWhole& a, const BoundedWhole& b) {
    if (b == BoundedWhole::exactly(0)) return {0, 0};
    if (b.low > 0 || b.high < 0) return hull_of_corners(a, b, floored);
    // By zero it is 0, and no divisor makes it larger; that it is rounded down may.
    return {-size_of(a) - 1, size_of(a)};
}

WideInterval rest_of(const BoundedWhole& a, const BoundedWhole& b) {
    if (b.is_exact() && b.low != 0) {
        const Wide low = floored(a.low, b.low), high = floored(a.high, b.low);
        if (low == high)
            return {std::min(a.low - low * b.low, a.high - low * b.low),
                    std::max(a.low - low * b.low, a.high - low * b.low)};
    }
    // It has the divisor's sign and is smaller.
    return {b.low < 0 ? Wide{b.low} + 1 : 0, b.high > 0 ? Wide{b.high} - 1 : 0};
}

/// Holds nothing beyond this, so that the next product can be formed.
constexpr Wide too_large = Wide{1} << 63;

BoundedWhole power_of(Kind kind, std::int64_t value, const BoundedWhole& a, const BoundedWhole& n) {
    if (!n.is_exact() || n.low < 0 || n.low > 63) return any_whole(kind, value);
    BoundedWhole out = BoundedWhole::exactly(1);
    for (std::int64_t k = 0; k < n.low; ++k) {
        const WideInterval next = product_of(out, a);
        if (next.low < -too_large || next.high >= too_large) return any_whole(kind, value);
        out = {value, static_cast<std::int64_t>(next.low), static_cast<std::int64_t>(next.high)};
    }
    return settled(kind, value, ends_of(out));
}

/// Whether a comparison holds for none, some or all pairs of the two intervals.
BoundedWhole compared(BinaryOp op, std::int64_t value, const BoundedWhole& a, const BoundedWhole& b) {
    const auto decided = [&](bool always, bool never) {
        return always || never ? BoundedWhole::exactly(value) : BoundedWhole{value, 0, 1};
    };
    const bool less = b.low > a.high, not_less = b.high <= a.low, greater = a.low > b.high, not_greater = a.high <= b.low;
    switch (op) {
        case BinaryOp::lt: return decided(less, not_less);
        case BinaryOp::ge: return decided(not_less, less);
        case BinaryOp::gt: return decided(greater, not_greater);
        case BinaryOp::le: return decided(not_greater, greater);
        default: return decided(less || greater, a.is_exact() && b.is_exact() && a.low == b.low);
    }
}

enum class Sides : std::uint8_t { no, either, yes };
Sides truth_of(const BoundedWhole& a) {
    if (a.low > 0 || a.high < 0) return Sides::yes;
    return a.is_exact() ? Sides::no : Sides::either;
}

BoundedWhole decided_by(BinaryOp op, std::int64_t value, const BoundedWhole& a, const BoundedWhole& b) {
    const Sides x = truth_of(a), y = truth_of(b), decides = op == BinaryOp::logical_and ? Sides::no : Sides::yes;
    const bool certainly = x == decides || y == decides || (x != Sides::either && y != Sides::either);
    return certainly ? BoundedWhole::exactly(value) : BoundedWhole{value, 0, 1};
}

}  // namespace

BoundedWhole any_whole(Kind kind, std::int64_t value) {
    return {value, whole_of(kind, -infinity), whole_of(kind, infinity)};
}
BoundedWhole any_whole(DType type, std::int64_t value) { return {value, facts(type).least, facts(type).most}; }

BoundedWhole wrapped(Kind kind, const BoundedWhole& a) { return settled(kind, wrap(kind, a.value), ends_of(a)); }
BoundedWhole wrapped(DType type, const BoundedWhole& a) {
    const std::int64_t value = wrap(type, a.value);
    if (facts(type).kind != DTypeKind::truth) return settled(type, value, ends_of(a));
    return truth_of(a) == Sides::either ? BoundedWhole{value, 0, 1} : BoundedWhole::exactly(value);
}

BoundedWhole truncated(DType type, const Bounded& a) {
    if (facts(type).kind == DTypeKind::truth) return whole_truth(a);
    const std::int64_t value = whole_of(type, a.value);
    if (is_unbounded(a)) return any_whole(type, value);
    BoundedWhole out = BoundedWhole::exactly(value);
    const auto hold = [&](double x) {
        out.low = std::min(out.low, whole_of(type, x));
        out.high = std::max(out.high, whole_of(type, x));
    };
    if (a.error > 0) hold(a.value - a.error), hold(a.value + a.error);
    if (a.may & may_be_infinite) hold(infinity);
    if (a.may & may_be_minus_infinite) hold(-infinity);
    if (a.may & may_be_nan) hold(0);
    return out;
}

BoundedWhole whole_truth(const Bounded& a) {
    const std::int64_t value = a.value != 0 ? 1 : 0;
    const bool either = a.may != 0 || is_unbounded(a) || (a.error > 0 && std::abs(a.value) <= a.error);
    return either ? BoundedWhole{value, 0, 1} : BoundedWhole::exactly(value);
}

namespace {
Bounded distance_within(const BoundedWhole& all, const BoundedWhole& a) {
    const auto value = static_cast<double>(a.value);
    if (a.low == all.low && a.high == all.high) return anything(value);
    const Wide distance = std::max(Wide{a.high} - a.value, Wide{a.value} - a.low);
    // As a double it is rounded itself.
    return {value, static_cast<double>(distance) * (distance > Wide{1} << 53 ? 1 + epsilon(DType::f64) : 1), 0};
}
}  // namespace

Bounded distance_of(DType type, const BoundedWhole& a) { return distance_within(any_whole(type, a.value), a); }

Bounded as_real(Kind kind, const BoundedWhole& a, const Rounding& rounding) {
    Bounded out = distance_within(any_whole(kind, a.value), a);
    const double size = std::abs(out.value) + out.error;
    if (size > rounding.whole && !is_unbounded(out)) out.error += rounding.step * size;
    return out;
}

BoundedWhole apply_integer(UnaryOp op, Kind kind, const BoundedWhole& a) {
    const std::int64_t value = apply_integer(op, kind, a.value);
    switch (scalar_function(op).is.of_integer) {
        case OfInteger::itself: return a;
        case OfInteger::negated: return settled(kind, value, {-Wide{a.high}, -Wide{a.low}});
        case OfInteger::size:
            return settled(kind, value, {a.low > 0 ? Wide{a.low} : a.high < 0 ? -Wide{a.high} : 0, size_of(a)});
        case OfInteger::truth:
            return truth_of(a) == Sides::either ? BoundedWhole{value, 0, 1} : BoundedWhole::exactly(value);
        case OfInteger::real: break;
    }
    throw InternalError("a function of integers that is real");
}

BoundedWhole apply_integer(BinaryOp op, Kind kind, const BoundedWhole& a, const BoundedWhole& b) {
    const std::int64_t value = apply_integer(op, kind, a.value, b.value);
    if (is_comparison(op)) return compared(op, value, a, b);
    if (op == BinaryOp::logical_and || op == BinaryOp::logical_or) return decided_by(op, value, a, b);
    if (a.is_exact() && b.is_exact()) return BoundedWhole::exactly(value);
    switch (op) {
        case BinaryOp::add: return settled(kind, value, {Wide{a.low} + b.low, Wide{a.high} + b.high});
        case BinaryOp::sub: return settled(kind, value, {Wide{a.low} - b.high, Wide{a.high} - b.low});
        case BinaryOp::mul: return settled(kind, value, product_of(a, b));
        case BinaryOp::floor_div: return settled(kind, value, quotient_of(a, b));
        case BinaryOp::mod: return settled(kind, value, rest_of(a, b));
        case BinaryOp::pow: return power_of(kind, value, a, b);
        case BinaryOp::min: return {value, std::min(a.low, b.low), std::min(a.high, b.high)};
        case BinaryOp::max: return {value, std::max(a.low, b.low), std::max(a.high, b.high)};
        default: throw InternalError("a quotient of integers is real");
    }
}

BoundedWhole select_whole(const BoundedWhole& condition, const BoundedWhole& a, const BoundedWhole& b) {
    const BoundedWhole& taken = condition.value != 0 ? a : b;
    if (truth_of(condition) != Sides::either) return taken;
    return {taken.value, std::min(a.low, b.low), std::max(a.high, b.high)};
}

}  // namespace napkin
