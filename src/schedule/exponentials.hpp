#pragma once
// Exponentials that no special function unit computes. A machine's unit for 2^x gives 16 results a clock where its threads issue 128 instructions; a part of a
// statement's exponentials may be computed by these instead: x is cut to what has a result, its whole part becomes the exponent of a power of two, and a
// polynomial of the rest, which lies in [0, 1), is multiplied by it. Infinities, what is no number, and results beyond the largest number or below the smallest
// normal one come out as the unit gives them. The argument is scaled for powers of two either way (emit_body.cpp), so that nothing else changes.
//
// An atom says of how many of its exponentials in a row that holds (Atom::polynomials); the degree follows from who takes the values. Where products round them
// to 16 bits or fewer, and sums of them are divided into such products alone, a polynomial is enough whose error is a part of that rounding, and the bounds of
// these products and sums have it beside the rounding (reduction_trees.cpp); else it is as good as the unit.
#include <array>
#include <optional>
#include <string>
#include <variant>

#include "schedule/scheduled.hpp"

namespace napkin {

/// 2^f of f in [0, 1) by a polynomial that is 1 at 0, rounded to f32; the prelude's exp2_by_polynomial has its coefficients.
struct PowerPolynomial {
    int degree = 0;
    double error = 0;  ///< largest relative error, over all 2^24 multiples of 2^-24
    /// Instructions of a thread for one exponential, where the unit takes one. Counted in the assembly of 16 of them (CUDA 13.0, sm_90a): two FMNMX to cut x, three FADD
    /// and a shift to part it, the FFMA, and the FMUL.
    int instructions = 0;
    friend bool operator==(const PowerPolynomial&, const PowerPolynomial&) = default;
};
/// Minimax coefficients. The last one is good to 3 roundings of f32, where ex2.approx is to 4 (PTX ISA: 2 ulp).
inline constexpr std::array<PowerPolynomial, 3> power_polynomials{{{2, 2.06e-3, 9}, {3, 8.6e-5, 10}, {5, 1.7e-7, 12}}};

/// The polynomial takes the first `some` of each `of` exponentials that a thread computes of a row.
struct PolynomialPart {
    int some = 0, of = 1;
    PowerPolynomial polynomial;
    [[nodiscard]] double share() const { return static_cast<double>(some) / of; }
};
/// What the step's atom says; none where it says nothing, or no exponential of the statement may be computed so.
std::optional<PolynomialPart> polynomial_part(const ScheduledKernel& kernel, const Step& step);

/// Number of exponentials of a row that one thread takes one after the other, which differ from column to column, or the reason why none may be
/// by a polynomial. Pre: the kernel's atoms are applied.
std::variant<std::int64_t, std::string> exponentials_of_row(const ScheduledKernel& kernel, const Step& step);
/// The divisor of n that is nearest to `wanted`, of two the smaller one.
std::int64_t nearest_divisor(std::int64_t n, std::int64_t wanted);
/// Relative error of the variable's values by polynomials that are not as good as the unit; 0: there are none.
double error_of_polynomials(const ScheduledKernel& kernel, VariableId id);

}  // namespace napkin
