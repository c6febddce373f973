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
template <class F>
constexpr ScalarFunction row(UnaryOp op, std::string_view name, F f, FunctionTraits traits) {
    return {op, name, f, &fill_row<F, double>, &fill_row<F, float>, traits};
}

#define NAPKIN_FUNCTION_OF(expression) [](auto x) { return static_cast<decltype(x)>(expression); }

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
        row(UnaryOp::neg, "-", NAPKIN_FUNCTION_OF(-x),
            {.of_integer = OfInteger::negated, .image = {p, z, n}, .order = falls, .inverse = UnaryOp::neg, .is_called = false}),
        row(UnaryOp::exp, "exp", NAPKIN_FUNCTION_OF(std::exp(x)),
            {.image = is_positive_everywhere,
             .order = rises,
             .inverse = UnaryOp::log,
             .error = {.kind = Kind::exponential, .steps = 2, .scales_argument = true},
             .work = OpKind::exp}),
        row(UnaryOp::log, "log", NAPKIN_FUNCTION_OF(std::log(x)),
            {.image = of_logarithm,
             .order = rises_from_zero,
             .inverse = UnaryOp::exp,
             .error = {.kind = Kind::logarithm, .steps = 2},
             .work = OpKind::log}),
        row(UnaryOp::tanh, "tanh", NAPKIN_FUNCTION_OF(std::tanh(x)),
            {.image = keeps_sign,
             .order = rises,
             .error = {.kind = Kind::between_ends, .steps = 4, .most = 1},
             .work = OpKind::tanh}),
        row(UnaryOp::erf, "erf", NAPKIN_FUNCTION_OF(std::erf(x)),
            {.image = keeps_sign, .order = rises, .error = {.kind = Kind::between_ends, .steps = 2, .most = 1}, .work = OpKind::erf}),
        row(UnaryOp::sqrt, "sqrt", NAPKIN_FUNCTION_OF(std::sqrt(x)),
            {.image = {undefined, z, p}, .order = rises_from_zero, .error = {.kind = Kind::root, .steps = 1}, .work = OpKind::sqrt}),
        row(UnaryOp::rsqrt, "rsqrt", NAPKIN_FUNCTION_OF(1 / std::sqrt(x)),
            {.image = {undefined, either_infinity, p},
             .order = falls_from_zero,
             .error = {.kind = Kind::reciprocal_root, .steps = 2},
             .work = OpKind::sqrt}),
        row(UnaryOp::abs, "abs", NAPKIN_FUNCTION_OF(std::fabs(x)),
            {.of_integer = OfInteger::size, .image = {p, z, p}, .order = rises_from_zero}),
        row(UnaryOp::logical_not, "not", NAPKIN_FUNCTION_OF(x == 0 ? 1 : 0),
            {.of_integer = OfInteger::truth, .image = {z, p, z}, .error = {.kind = Kind::truth}, .is_called = false}),
        row(UnaryOp::sin, "sin", NAPKIN_FUNCTION_OF(std::sin(x)),
            {.image = any_finite, .error = {.steps = 2, .most = 1}, .work = OpKind::sin}),
        row(UnaryOp::cos, "cos", NAPKIN_FUNCTION_OF(std::cos(x)),
            {.image = any_finite, .error = {.steps = 2, .most = 1}, .work = OpKind::sin}),
        row(UnaryOp::floor, "floor", NAPKIN_FUNCTION_OF(std::floor(x)),
            {.of_integer = OfInteger::itself, .image = {n, z, z | p}, .order = rises, .error = exact_steps}),
        row(UnaryOp::ceil, "ceil", NAPKIN_FUNCTION_OF(std::ceil(x)),
            {.of_integer = OfInteger::itself, .image = {n | z, z, p}, .order = rises, .error = exact_steps}),
        row(UnaryOp::round, "round", NAPKIN_FUNCTION_OF(std::nearbyint(x)),  // halves to even
            {.of_integer = OfInteger::itself, .image = {n | z, z, z | p}, .order = rises, .error = exact_steps}),
        row(UnaryOp::trunc, "trunc", NAPKIN_FUNCTION_OF(std::trunc(x)),
            {.of_integer = OfInteger::itself, .image = {n | z, z, z | p}, .order = rises, .error = exact_steps}),
        row(UnaryOp::exp2, "exp2", NAPKIN_FUNCTION_OF(std::exp2(x)),
            {.image = is_positive_everywhere,
             .order = rises,
             .inverse = UnaryOp::log2,
             .error = {.kind = Kind::exponential, .steps = 2, .scale = std::numbers::ln2},
             .work = OpKind::exp}),
        row(UnaryOp::log2, "log2", NAPKIN_FUNCTION_OF(std::log2(x)),
            {.image = of_logarithm,
             .order = rises_from_zero,
             .inverse = UnaryOp::exp2,
             .error = {.kind = Kind::logarithm, .steps = 2, .scale = std::numbers::log2e},
             .work = OpKind::log}),
        row(UnaryOp::expm1, "expm1", NAPKIN_FUNCTION_OF(std::expm1(x)),
            {.image = keeps_sign,
             .order = rises,
             .inverse = UnaryOp::log1p,
             .error = {.kind = Kind::between_ends, .steps = 3},
             .work = OpKind::tanh}),
        row(UnaryOp::log1p, "log1p", NAPKIN_FUNCTION_OF(std::log1p(x)),
            {.image = {undefined | below | n, z, p},
             .order = rises_from_zero,
             .inverse = UnaryOp::expm1,
             .error = {.kind = Kind::logarithm, .steps = 2, .from = -1},
             .work = OpKind::log}),
        row(UnaryOp::sinh, "sinh", NAPKIN_FUNCTION_OF(std::sinh(x)),
            {.image = keeps_sign, .order = rises, .error = {.kind = Kind::between_ends, .steps = 3}, .work = OpKind::tanh}),
        row(UnaryOp::cosh, "cosh", NAPKIN_FUNCTION_OF(std::cosh(x)),
            {.image = is_positive_everywhere,
             .order = rises_from_zero,
             .error = {.kind = Kind::between_ends, .steps = 3},
             .work = OpKind::tanh}),
        row(UnaryOp::atan, "atan", NAPKIN_FUNCTION_OF(std::atan(x)),
            {.image = keeps_sign,
             .order = rises,
             .error = {.kind = Kind::between_ends, .steps = 2, .most = 1.6},
             .work = OpKind::log}),
        row(UnaryOp::erfc, "erfc", NAPKIN_FUNCTION_OF(std::erfc(x)),
            {.image = is_positive_everywhere,
             .order = falls,
             .error = {.kind = Kind::between_ends, .steps = 5, .most = 2},
             .work = OpKind::erf}),
    };
}();

#undef NAPKIN_FUNCTION_OF

static_assert([] {
    for (std::size_t i = 0; i < functions.size(); ++i)
        if (functions[i].op != static_cast<UnaryOp>(i)) return false;
    return functions.size() == static_cast<std::size_t>(UnaryOp::erfc) + 1;
}());

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
