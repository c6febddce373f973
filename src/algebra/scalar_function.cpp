#include "algebra/scalar_function.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "support/result.hpp"

namespace napkin {
namespace {

template <class F, class T>
void fill_row(T* out, const T* x, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) out[j] = F{}(x[j]);
}

/// `f` takes float and double.
template <class F, class Slope>
constexpr ScalarFunction row(UnaryOp op, std::string_view name, std::string_view in_cuda, F f, Slope slope,
                             FunctionTraits traits) {
    return {op, name, in_cuda, f, &fill_row<F, double>, &fill_row<F, float>, slope, traits};
}

// What slopes are written with.
constexpr double two_over_root_pi = 2 * std::numbers::inv_sqrtpi;
Expr fixed(double value) { return constant(value); }
Expr operator+(double a, const Expr& b) { return binary(BinaryOp::add, fixed(a), b); }
Expr operator-(double a, const Expr& b) { return binary(BinaryOp::sub, fixed(a), b); }
Expr operator*(double a, const Expr& b) { return binary(BinaryOp::mul, fixed(a), b); }
Expr operator/(double a, const Expr& b) { return binary(BinaryOp::div, fixed(a), b); }
Expr operator*(const Expr& a, const Expr& b) { return binary(BinaryOp::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return binary(BinaryOp::div, a, b); }
Expr operator-(const Expr& a) { return unary(UnaryOp::neg, a); }
Expr exp(const Expr& a) { return unary(UnaryOp::exp, a); }
Expr sin(const Expr& a) { return unary(UnaryOp::sin, a); }
Expr cos(const Expr& a) { return unary(UnaryOp::cos, a); }
Expr sinh(const Expr& a) { return unary(UnaryOp::sinh, a); }
Expr cosh(const Expr& a) { return unary(UnaryOp::cosh, a); }
Expr rsqrt(const Expr& a) { return unary(UnaryOp::rsqrt, a); }
Expr sign(const Expr& a) {
    const auto holds = [&](BinaryOp op) { return binary(op, a, fixed(0)); };
    return select(holds(BinaryOp::lt), fixed(-1), select(holds(BinaryOp::gt), fixed(1), fixed(0)));
}

/// In the order of the operators.
constexpr std::array functions = [] {
    using Kind = ErrorRule::Kind;
    constexpr ValueClass n{ValueClass::negative}, z{ValueClass::zero}, p{ValueClass::positive},
        undefined{ValueClass::undefined}, below{ValueClass::minus_infinite},
        // The sign of a zero depends on how it came about.
        either_infinity{ValueClass::infinite | ValueClass::minus_infinite};
    constexpr Image keeps_sign{n, z, p}, is_positive_everywhere{p, p, p}, of_logarithm{undefined, below, n | z | p},
        any_finite{n | z | p, n | z | p, n | z | p};

    constexpr Order rises{}, falls{.increasing = false};
    constexpr Order rises_from_zero{.domain = Order::Domain::not_negative},
        falls_from_zero{.increasing = false, .domain = Order::Domain::not_negative};

    constexpr ErrorRule exact_steps{.kind = Kind::between_ends};
    return std::array{
#define NAPKIN_SCALAR(op, name, in_cuda, value, slope, ...)                                 \
    row(                                                                                    \
        UnaryOp::op, name, in_cuda, [](auto x) { return static_cast<decltype(x)>(value); }, \
        []([[maybe_unused]] const Expr& x, [[maybe_unused]] const Expr& y) -> Expr { return slope; }, {__VA_ARGS__}),
#include "algebra/scalar_functions.inc"
#undef NAPKIN_SCALAR
    };
}();

}  // namespace

const ScalarFunction& scalar_function(UnaryOp op) {
    const auto at = static_cast<std::size_t>(op);
    internal_check(at < functions.size(), "unknown unary operator");
    return functions[at];
}
std::span<const ScalarFunction> scalar_functions() { return functions; }

std::string_view name(OpKind kind) {
    constexpr std::string_view names[num_op_kinds] = {"fma", "simple", "div", "sqrt", "exp",
                                                      "log", "tanh",   "erf", "sin",  "pow"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace napkin
