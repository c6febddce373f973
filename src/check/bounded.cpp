#include "check/bounded.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algebra/scalar_function.hpp"
#include "support/result.hpp"

namespace napkin {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
/// Stands for a finite number that the reference itself cannot hold: of its size nothing is known but that it is larger
/// than `least_beyond`.
constexpr double beyond = 1e300, least_beyond = 1e290;

/// Error of a whole power by repeated squaring, in units of Rounding::step. Functions have theirs in their table.
constexpr double power_steps = 8;

Bounded certain(double value) { return {value, 0, 0}; }

/// A finite result within its error, and what it may have become by overflow.
Bounded settle(double value, double error, const Rounding& r) {
    if (!(error < infinity) || std::isinf(value)) return anything(value);
    return {value, error, overflow(value, error, r)};
}

/// A result beyond a double, of a finite argument.
Bounded beyond_double(double v) {
    const bool positive = v > 0;
    return {positive ? beyond : -beyond, beyond * 0.9, positive ? may_be_infinite : may_be_minus_infinite};
}

/// The result v = ±exp(log_size), to within a factor of exp(±exponent) and some roundings: an exponential, whose real
/// value may be beyond a double.
Bounded within_factor(double v, double log_size, double exponent, double steps, const Rounding& r) {
    if (log_size + exponent < log_of_nothing(r)) return {v, nothing(log_size + exponent), 0};
    if (std::isinf(v) && log_size - exponent > std::log(beyond)) return beyond_double(v);
    return settle(v, std::abs(v) * (std::expm1(exponent) + steps * r.step) + steps * r.smallest, r);
}

/// The error of so many roundings of v, also where it underflows.
double rounded(double v, double steps, const Rounding& r) {
    return v != 0 ? steps * (r.step * std::abs(v) + r.smallest) : 0;
}

/// Calls f with each special value in `may`.
template <class F>
void for_each_special(std::uint8_t may, F f) {
    if (may & may_be_infinite) f(infinity);
    if (may & may_be_minus_infinite) f(-infinity);
    if (may & may_be_nan) f(nan);
}

/// Calls f with the values of an interval at which an operation takes its extremes among the special cases: ends,
/// centre, zero.
template <class F>
void for_each_corner(const Bounded& x, F f) {
    f(x.value);
    if (x.error == 0) return;
    f(x.value - x.error);
    f(x.value + x.error);
    if (std::abs(x.value) < x.error) f(0.0);
}

bool is_beyond(const Bounded& x) { return std::abs(x.value) + x.error >= least_beyond; }

/// What an operation makes of a number that may be as large as it likes: known only where it is as large again.
Bounded of_beyond(const Bounded& out) { return is_beyond(out) ? out : anything(out.value); }

bool touches_zero(const Bounded& x) { return !(std::abs(x.value) > x.error); }

Bounded exponential(const ScalarFunction& f, const Bounded& a, const Rounding& r) {
    const ErrorRule& rule = f.is.error;
    const double log_size = rule.scale * a.value,
                 exponent = rule.scale * (a.error + (rule.scales_argument ? r.step * std::abs(a.value) : 0));
    return within_factor(f.value(a.value), log_size, exponent, rule.steps, r);
}

Bounded logarithm(const ScalarFunction& f, const Bounded& a, const Rounding& r) {
    const ErrorRule& rule = f.is.error;
    if (is_beyond(a)) return anything(f.value(a.value));
    if (a.value + a.error < rule.from) return certain(nan);
    if (a.value == rule.from && a.error == 0) return certain(-infinity);
    const double v = f.value(a.value), distance = a.value - rule.from;
    if (distance <= a.error) return anything(v);
    return settle(v, -rule.scale * std::log1p(-a.error / distance) + rounded(v, rule.steps, r), r);
}

Bounded square_root(const Bounded& a, double steps, const Rounding& r) {
    if (is_beyond(a)) return anything(std::sqrt(a.value));
    if (a.value + a.error < 0) return certain(nan);
    if (a.value < 0) return anything(nan);
    const double v = std::sqrt(a.value);
    const bool may_be_negative = a.value < a.error;
    const double down = may_be_negative ? v : a.error / std::max(v + std::sqrt(a.value - a.error), 1e-300);
    const double up = a.error / std::max(v + std::sqrt(a.value + a.error), 1e-300);
    Bounded out = settle(v, (a.error == 0 ? 0 : std::max(down, up)) + steps * r.step * v, r);
    if (may_be_negative) out.may |= may_be_nan;
    return out;
}

Bounded reciprocal_root(const Bounded& a, double steps, const Rounding& r) {
    if (a.value + a.error < 0) return certain(nan);
    if (a.value == 0 && a.error == 0) return {infinity, 0, may_be_infinite | may_be_minus_infinite};
    const double v = 1 / std::sqrt(a.value);
    if (a.value <= a.error) return anything(v);
    return settle(v, v * (std::expm1(-0.5 * std::log1p(-a.error / a.value)) + steps * r.step), r);
}

/// The extremes lie at the ends, or at 0 for an even function. These are computed in double, which counts where that is
/// what runs.
Bounded between_ends(const ScalarFunction& f, const Bounded& a, const Rounding& r) {
    const double v = f.value(a.value), own = rounded(v, f.is.error.steps, r);
    double error = 0, nearest = std::abs(v);
    const auto reach = [&](double x) {
        const double end = f.value(x);
        error = std::max(error, std::abs(end - v));
        nearest = std::min(nearest, std::abs(end));
    };
    if (a.error > 0) {
        reach(a.value - a.error), reach(a.value + a.error);
        if (std::abs(a.value) < a.error) reach(0);
        if (own > 0) error += 2 * epsilon(DType::f64) * std::abs(v);
    }
    if (std::isinf(v)) return nearest > beyond ? beyond_double(v) : anything(v);
    return settle(v, std::min(2 * f.is.error.most, error + own), r);
}

Bounded finite_unary(UnaryOp op, const Bounded& a, const Rounding& r) {
    const ScalarFunction& f = scalar_function(op);
    const ErrorRule& rule = f.is.error;
    switch (rule.kind) {
        case ErrorRule::Kind::at_most_kept: {
            const double v = f.value(a.value);
            return {v, std::min(2 * rule.most, a.error + rounded(v, rule.steps, r)), 0};
        }
        case ErrorRule::Kind::between_ends: return between_ends(f, a, r);
        case ErrorRule::Kind::exponential: return exponential(f, a, r);
        case ErrorRule::Kind::logarithm: return logarithm(f, a, r);
        case ErrorRule::Kind::root: return square_root(a, rule.steps, r);
        case ErrorRule::Kind::reciprocal_root: return reciprocal_root(a, rule.steps, r);
        case ErrorRule::Kind::truth: return {f.value(a.value), a.error > 0 && touches_zero(a) ? 1.0 : 0.0, 0};
    }
    throw InternalError("unknown rule of a function's error");
}

/// The result for an infinity or NaN. Limits are exact where they are whole numbers.
Bounded of_special(UnaryOp op, double special, const Rounding& r) {
    const double v = apply(op, special);
    const bool is_rounded = std::isfinite(v) && v != std::trunc(v);
    return {v, is_rounded ? rounded(v, scalar_function(op).is.error.steps, r) : 0, 0};
}

Bounded quotient(const Bounded& a, const Bounded& b, const Rounding& r) {
    const double v = a.value / b.value;
    if (b.value == 0 && b.error == 0) {
        // What runs may leave out a weight of 0, so that 0/0 does not show.
        if (touches_zero(a)) return anything(v);
        // The sign of a zero depends on how it came about.
        return std::isnan(v) ? certain(v) : Bounded{v, 0, may_be_infinite | may_be_minus_infinite};
    }
    if (touches_zero(b)) return anything(v);
    const double error = (a.error + std::abs(v) * b.error) / (std::abs(b.value) - b.error);
    return settle(v, error + r.step * std::abs(v) + (a.value != 0 ? r.smallest : 0), r);
}

Bounded power(const Bounded& a, const Bounded& b, const Rounding& r) {
    const double v = std::pow(a.value, b.value);
    if (b.error == 0 && b.value == 0) return certain(1);
    const bool is_whole = b.error == 0 && b.value == std::floor(b.value);
    if (std::isnan(v)) return b.error > 0 || a.value + a.error >= 0 ? anything(v) : certain(v);
    const double size = std::abs(a.value);
    if (size > a.error || (a.error == 0 && size > 0)) {
        const double relative = a.error > 0 ? -std::log1p(-a.error / size) : 0, log_of_size = std::log(size),
                     log_size = std::abs(log_of_size);
        if (a.value < 0 && b.error > 0) return anything(v);
        double exponent = std::abs(b.value) * relative + b.error * (log_size + relative);
        // But for small whole exponents the power is taken through a logarithm, or by another base's exponential.
        if (!is_whole || std::abs(b.value) > power_steps) exponent += r.step * std::abs(b.value) * log_size;
        return within_factor(v, b.value * log_of_size, exponent, power_steps, r);
    }
    if (b.value - b.error <= 0) {
        if (a.error > 0 || b.error > 0) return anything(v);
        return {v, 0, may_be_infinite | may_be_minus_infinite};
    }
    if (b.error > 0) return anything(v);
    const double most = std::pow(size + a.error, b.value);
    Bounded out = settle(v, a.error > 0 ? (most + std::abs(v)) * (1 + power_steps * r.step) + r.smallest : 0, r);
    if (!is_whole && a.value < a.error) out.may |= may_be_nan;
    return out;
}

Bounded larger(const Bounded& a, const Bounded& b) {
    const double gap = a.value - b.value;
    if (std::abs(gap) > a.error + b.error) return gap > 0 ? a : b;
    return {std::max(a.value, b.value), std::max(a.error, b.error), 0};
}

Bounded finite_binary(BinaryOp op, const Bounded& a, const Bounded& b, const Rounding& r, bool whole) {
    const auto step = [&](double v) { return whole && std::abs(v) <= r.whole ? 0 : r.step * std::abs(v); };
    switch (op) {
        case BinaryOp::add:
        case BinaryOp::sub: {
            const double v = op == BinaryOp::add ? a.value + b.value : a.value - b.value;
            const double error = a.error + b.error + step(v);
            return settle(v, error + flushed(v, error, r), r);
        }
        case BinaryOp::mul: {
            const double v = a.value * b.value;
            const double error = std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
            const Bounded out = settle(v, error + step(v) + (v != 0 && !whole ? r.smallest : 0), r);
            const bool vanishes = (a.value == 0 && a.error == 0) || (b.value == 0 && b.error == 0);
            return !vanishes && (is_beyond(a) || is_beyond(b)) ? of_beyond(out) : out;
        }
        case BinaryOp::div: {
            const Bounded out = quotient(a, b, r);
            return is_beyond(a) ? of_beyond(out) : out;
        }
        case BinaryOp::floor_div: return apply(UnaryOp::floor, quotient(a, b, r), r);
        case BinaryOp::mod: {
            const Bounded whole_part = apply(UnaryOp::floor, quotient(a, b, r), r);
            const double v = apply(op, a.value, b.value);
            if (is_unbounded(whole_part)) return anything(v);
            const double carried = a.error + std::abs(whole_part.value) * b.error;
            const double jump = whole_part.error * (std::abs(b.value) + b.error);
            return settle(v, carried + jump + r.step * std::abs(a.value), r);
        }
        case BinaryOp::pow: {
            const Bounded out = power(a, b, r);
            // A root of such a number is known no better; a negative power of it is next to 0, where the error says so.
            if (is_beyond(a) && b.value > 0) return of_beyond(out);
            if (is_beyond(a) && b.value < 0 && out.error < std::abs(out.value)) return anything(out.value);
            return whole && std::abs(out.value) <= r.whole ? certain(out.value) : out;
        }
        case BinaryOp::max: return larger(a, b);
        case BinaryOp::min: {
            const Bounded out = larger({-a.value, a.error, 0}, {-b.value, b.error, 0});
            return {-out.value, out.error, 0};
        }
        default: break;
    }
    throw InternalError("unknown binary operator");
}

/// Whether the value is zero: no, it depends, yes.
enum class Truth : std::uint8_t { no, either, yes };
Truth truth(const Bounded& x) {
    if (x.may != 0 || is_unbounded(x) || (x.error > 0 && touches_zero(x))) return Truth::either;
    return x.value != 0 ? Truth::yes : Truth::no;
}

Bounded condition(double value, bool certainly) { return {value, certainly ? 0.0 : 1.0, 0}; }

Bounded logic(BinaryOp op, const Bounded& a, const Bounded& b) {
    const Truth x = truth(a), y = truth(b), decides = op == BinaryOp::logical_and ? Truth::no : Truth::yes;
    const bool certainly = x == decides || y == decides || (x != Truth::either && y != Truth::either);
    return condition(apply(op, a.value, b.value), certainly);
}

Bounded comparison(BinaryOp op, const Bounded& a, const Bounded& b) {
    const double v = apply(op, a.value, b.value);
    if (a.may != 0 || b.may != 0 || is_unbounded(a) || is_unbounded(b)) return condition(v, false);
    const double reach = a.error + b.error;
    // An infinity or a NaN compares alike with all values of an interval.
    return condition(
        v, reach == 0 || !std::isfinite(a.value) || !std::isfinite(b.value) || std::abs(a.value - b.value) > reach);
}

}  // namespace

Bounded anything(double value) { return {value, infinity, may_be_any}; }

Rounding rounding_of(DType working) {
    Rounding r;
    const FormatRange range = format_range(working);
    r.type = working;
    r.unit = range.epsilon / 2 + epsilon(DType::f64) / 2;
    r.step = 2 * r.unit;
    r.smallest = range.smallest_normal;  // emitted kernels flush what is below to 0
    r.largest = range.largest;
    r.whole = 2 / range.epsilon;
    return r;
}

double log_of_nothing(const Rounding& r) { return std::log(r.smallest) - 2; }

double nothing(double log_size) { return 2 * std::exp(log_size) + std::numeric_limits<double>::denorm_min(); }

std::uint8_t overflow(double value, double error, const Rounding& r) {
    std::uint8_t may = 0;
    if (value + error > r.largest) may |= may_be_infinite;
    if (value - error < -r.largest) may |= may_be_minus_infinite;
    return may;
}

void admit(Bounded& x, double other) {
    if (is_unbounded(x) || other == x.value || (std::isnan(other) && std::isnan(x.value))) return;
    if (std::isnan(other)) {
        x.may |= may_be_nan;
    } else if (std::isinf(other)) {
        x.may |= other > 0 ? may_be_infinite : may_be_minus_infinite;
    } else if (std::isfinite(x.value)) {
        x.error = std::max(x.error, std::abs(other - x.value));
    } else {
        x = anything(x.value);
    }
}

Bounded apply(UnaryOp op, const Bounded& a, const Rounding& r) {
    if (gives_truth(op)) return condition(apply(op, a.value), truth(a) != Truth::either);
    if (is_unbounded(a)) return anything(apply(op, a.value));
    Bounded out = std::isfinite(a.value) ? finite_unary(op, a, r) : of_special(op, a.value, r);
    for_each_special(a.may, [&](double special) {
        for_each_corner(of_special(op, special, r), [&](double value) { admit(out, value); });
    });
    return out;
}

Bounded apply(BinaryOp op, const Bounded& a, const Bounded& b, const Rounding& r, bool whole) {
    if (is_comparison(op)) return comparison(op, a, b);
    if (op == BinaryOp::logical_and || op == BinaryOp::logical_or) return logic(op, a, b);
    // Among exponents there may be whole ones, by which alone -inf has a power.
    const bool by_any = op == BinaryOp::pow && b.error > 0 &&
                        (a.value == -infinity || (a.may & may_be_minus_infinite) != 0);
    if (is_unbounded(a) || is_unbounded(b) || by_any) return anything(apply(op, a.value, b.value));
    Bounded out;
    if (std::isfinite(a.value) && std::isfinite(b.value)) {
        out = finite_binary(op, a, b, r, whole);
    } else {
        out = certain(apply(op, a.value, b.value));
        // What runs may leave out a weight of 0, so that 0·∞ and 0/NaN do not show.
        if (op == BinaryOp::mul && (a.value == 0 || b.value == 0)) return anything(out.value);
        if (op == BinaryOp::div && a.value == 0 && std::isnan(b.value)) return anything(out.value);
        for_each_corner(a, [&](double x) { for_each_corner(b, [&](double y) { admit(out, apply(op, x, y)); }); });
    }
    for_each_special(a.may, [&](double x) {
        for_each_corner(b, [&](double y) { admit(out, apply(op, x, y)); });
        for_each_special(b.may, [&](double y) { admit(out, apply(op, x, y)); });
    });
    for_each_special(b.may, [&](double y) { for_each_corner(a, [&](double x) { admit(out, apply(op, x, y)); }); });
    return out;
}

Bounded select(const Bounded& condition, const Bounded& a, const Bounded& b) {
    const Truth x = truth(condition);
    Bounded out = condition.value != 0 ? a : b;
    const Bounded& other = condition.value != 0 ? b : a;
    if (x != Truth::either) return out;
    if (is_unbounded(other)) return anything(out.value);
    admit(out, other.value);
    if (std::isfinite(other.value) && other.error > 0) {
        admit(out, other.value - other.error);
        admit(out, other.value + other.error);
    }
    out.may |= other.may;
    return out;
}

Bounded cast(DType type, const Bounded& a) {
    if (is_unbounded(a)) return anything(round_to(type, a.value));
    Bounded out = certain(round_to(type, a.value));
    if (a.error > 0) {
        const double low = round_to(type, a.value - a.error), high = round_to(type, a.value + a.error);
        if (std::isfinite(out.value)) {
            // What is beyond the type at one end has all of its numbers on the way there.
            const double most = format_range(type).largest;
            const double least = std::isfinite(low) ? low : -most, largest = std::isfinite(high) ? high : most;
            out = {least / 2 + largest / 2, largest / 2 - least / 2, 0};
        }
        admit(out, low);
        admit(out, high);
    }
    // A derivation may take a factor out of a cast, which then rounds something else (split.cpp).
    if (std::isfinite(out.value) && out.value != 0) {
        const FormatRange range = format_range(type);
        out.error += std::max(std::abs(out.value) * range.epsilon, range.smallest_subnormal) / 2;
    }
    for_each_special(a.may, [&](double special) { admit(out, round_to(type, special)); });
    if (may_be_flushed(type, out.value, out.error)) admit(out, 0);
    return out;
}

Bounded stored(DType type, const Bounded& a) {
    if (is_unbounded(a) || std::isnan(a.value)) return a;
    Bounded out = a;
    for_each_corner(a, [&](double x) { admit(out, round_to(type, x)); });
    for_each_special(a.may, [&](double special) { admit(out, round_to(type, special)); });
    if (may_be_flushed(type, out.value, out.error)) admit(out, 0);
    return out;
}

bool may_be_flushed(DType type, double value, double error) {
    const double smallest = format_range(type).smallest_normal;
    return smallest <= format_range(DType::f32).smallest_normal && value != 0 && std::abs(value) - error < smallest;
}

}  // namespace napkin
