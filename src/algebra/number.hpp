#pragma once
// Values with a kind: real numbers in double precision and integers that are exact. What an operator means on integers
// stands here once; every evaluator and the emitted code follow it.
//
// Integers wrap at their width (two's complement), as NumPy's do. The operators `//` and `%` round toward minus
// infinity, and give 0 for a divisor of 0. Division by `/` and functions such as exp give real numbers. So does a
// power, unless the exponent is an integer constant from 0 up. A comparison of integers is exact.
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"
#include "support/dtype.hpp"

namespace napkin {

/// What a value is, from narrow to wide: two values meet in the wider kind.
enum class Kind : std::uint8_t {
    whole,  ///< a constant, or the truth of a comparison: an integer of the width that its partner asks for
    i32,
    i64,
    real,
};
inline bool is_integer(Kind kind) { return kind != Kind::real; }

/// Narrower integers and truths are computed with as i32.
Kind kind_of(DType type);
Kind join(Kind a, Kind b);
/// The kind of the operator's result. A power of an integer is one where `exponent` is a whole constant from 0 up.
Kind kind_of(UnaryOp op, Kind a);
Kind kind_of(BinaryOp op, Kind a, Kind b, const Expr& exponent);
/// The kind of a constant: whole where it fits 32 bits, i64 where it is whole and does not, else real.
Kind kind_of(const Constant& c);

/// The integer modulo 2^32, as a signed one, for i32; for all others itself.
std::int64_t wrap(Kind kind, std::int64_t value);
/// The integer modulo 2^bits of the type, in its range; a truth is 1 where it is not 0.
std::int64_t wrap(DType type, std::int64_t value);
/// Whether the type has the integer.
bool is_in_range(DType type, std::int64_t value);
/// Toward zero, into the range of the kind or type; NaN gives 0. A truth is 1 where the number is not 0, also of NaN.
std::int64_t whole_of(Kind kind, double value);
std::int64_t whole_of(DType type, double value);
/// The constant, where it is a whole number of 64 bits.
std::optional<std::int64_t> whole_of(const Constant& c);

// Operators on integers of one kind. Comparisons and logic give 0 or 1. The result of an operator that is real on
// integers is not asked for here.
std::int64_t apply_integer(UnaryOp op, Kind kind, std::int64_t a);
std::int64_t apply_integer(BinaryOp op, Kind kind, std::int64_t a, std::int64_t b);
std::int64_t apply_integer(ReduceOp op, Kind kind, std::int64_t a, std::int64_t b);
/// Sums and products begin at 0 and 1, a maximum at the least value of the kind, a minimum at its largest.
std::int64_t integer_identity(ReduceOp op, Kind kind);
/// A value of one kind.
class Number {
public:
    Number() = default;
    static Number real(double value) { return Number(Kind::real, value, 0); }
    static Number whole(Kind kind, std::int64_t value) { return Number(kind, 0, wrap(kind, value)); }

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] double as_real() const { return kind_ == Kind::real ? real_ : static_cast<double>(whole_); }
    /// In an integer kind: an integer wraps, a real number is truncated into the range.
    [[nodiscard]] std::int64_t as_whole(Kind kind) const {
        return kind_ == Kind::real ? whole_of(kind, real_) : wrap(kind, whole_);
    }
    [[nodiscard]] Number to(Kind kind) const {
        return kind == Kind::real ? real(as_real()) : whole(kind, as_whole(kind));
    }
    [[nodiscard]] Number to(DType type) const {
        if (is_float(type)) return real(as_real());
        return whole(kind_of(type), kind_ == Kind::real ? whole_of(type, real_) : wrap(type, whole_));
    }
    [[nodiscard]] bool truth() const { return kind_ == Kind::real ? real_ != 0 : whole_ != 0; }

private:
    Number(Kind kind, double real, std::int64_t whole) : kind_(kind), real_(real), whole_(whole) {}
    Kind kind_ = Kind::real;
    double real_ = 0;
    std::int64_t whole_ = 0;
};

Number number_of(const Constant& c);
Number apply(UnaryOp op, const Number& a);
/// `result`: the kind of the operator on these operands.
Number apply(BinaryOp op, Kind result, const Number& a, const Number& b);
Number apply(ReduceOp op, const Number& a, const Number& b);
Number identity(ReduceOp op, Kind kind);

/// The kinds of expressions whose reads take elements of arrays of known types. Remembers what it was asked.
class Kinds {
public:
    /// `types` is asked for the type of an array while the object lives.
    explicit Kinds(std::function<DType(ArrayId)> types) : types_(std::move(types)) {}
    Kind operator()(const Expr& e);

private:
    std::function<DType(ArrayId)> types_;
    std::unordered_map<Expr, Kind> known_;  ///< by identity; holds the nodes alive
};

}  // namespace napkin
