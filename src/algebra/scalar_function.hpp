#pragma once
// The functions of one number, as data. A row says all that is known of a function: its name in the language and in
// emitted code, its values for real numbers and integers, and their signs. It also says how the function orders its
// arguments, how errors pass through it, and what it costs. A new function is a row of scalar_functions.inc and a
// function of vectors in emit/cpu/prelude_math.inc.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "algebra/expr.hpp"
#include "algebra/op_kind.hpp"
#include "algebra/value_class.hpp"

namespace napkin {

/// What a function gives of an integer.
enum class OfInteger : std::uint8_t {
    real,  ///< a real number
    itself,
    negated,
    size,
    truth,  ///< 0 or 1, of real numbers too
};

/// The kinds of values that it gives of the finite numbers of each sign.
struct Image {
    ValueClass of_negative, of_zero, of_positive;
};

/// Where a function keeps or turns the order of its arguments, so that an extremum passes through it.
struct Order {
    enum class Domain : std::uint8_t { all, not_negative };
    bool increasing = true;
    Domain domain = Domain::all;
};

/// How far the result is off where its argument is, and by how much the function itself.
struct ErrorRule {
    enum class Kind : std::uint8_t {
        at_most_kept,     ///< no slope is above 1
        between_ends,     ///< extremes lie at the ends of an interval, or at 0
        exponential,      ///< e^(scale·x)
        logarithm,        ///< scale·log(x - from)
        root,             ///< √x
        reciprocal_root,  ///< 1/√x
        truth,            ///< as of a condition
    };
    Kind kind = Kind::at_most_kept;
    /// The largest of the errors that the preludes state, in units in the last place of the result.
    double steps = 0;
    double most = std::numeric_limits<double>::infinity();  ///< the largest result's size
    double scale = 1, from = 0;
    bool scales_argument = false;  ///< emitted code may round the argument once more
};

/// What the table says beside the name and the values.
struct FunctionTraits {
    OfInteger of_integer = OfInteger::real;
    Image image = {};
    std::optional<Order> order = {};
    std::optional<UnaryOp> inverse = {};  ///< f(inverse(x)) = x over the reals
    ErrorRule error = {};
    OpKind work = OpKind::simple;
    bool is_called = true;  ///< written name(x)
};

struct ScalarFunction {
    UnaryOp op;
    std::string_view name;
    std::string_view in_cuda;  ///< CUDA's function of double; of float with an f behind it; "": the prelude's own
    double (*value)(double);
    void (*of_doubles)(double* out, const double* x, std::int64_t n);
    void (*of_floats)(float* out, const float* x, std::int64_t n);
    Expr (*slope)(const Expr& x, const Expr& y);  ///< dy/dx, where y is the function of x; 0 between steps
    FunctionTraits is;

    void fill(double* out, const double* x, std::int64_t n) const { of_doubles(out, x, n); }
    void fill(float* out, const float* x, std::int64_t n) const { of_floats(out, x, n); }
};

/// The row of the operator.
const ScalarFunction& scalar_function(UnaryOp op);
std::span<const ScalarFunction> scalar_functions();

/// Rounds to a whole number, and leaves whole numbers as they are.
inline bool gives_integer(UnaryOp op) { return scalar_function(op).is.of_integer == OfInteger::itself; }
/// Always 0 or 1.
inline bool gives_truth(UnaryOp op) { return scalar_function(op).is.of_integer == OfInteger::truth; }

}  // namespace napkin
