#pragma once
// Size expressions: finite sums of coefficient · Π symbol^exponent with rational coefficients and exponents (signed
// posynomials). They carry axis sizes, group sizes, H and M while sizes are symbolic, and print with the paper's
// letters.
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algebra/symbol.hpp"

namespace napkin {

/// An exact rational in lowest terms, denominator > 0. Overflow past 64 bits throws InternalError.
class Rational {
public:
    Rational(std::int64_t numerator = 0, std::int64_t denominator = 1);
    [[nodiscard]] std::int64_t numerator() const { return n_; }
    [[nodiscard]] std::int64_t denominator() const { return d_; }
    [[nodiscard]] bool is_integer() const { return d_ == 1; }
    [[nodiscard]] double to_double() const { return static_cast<double>(n_) / static_cast<double>(d_); }
    friend bool operator==(const Rational&, const Rational&) = default;
    friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);

private:
    std::int64_t n_, d_;
};
Rational operator+(Rational a, Rational b);
Rational operator-(Rational a, Rational b);
Rational operator*(Rational a, Rational b);
Rational operator/(Rational a, Rational b);
std::string to_string(Rational r);

/// Exponents non-zero; a prime's lies between 0 and 1.
using Monomial = std::map<Symbol, Rational>;

class Size {
public:
    Size() = default;                                                      ///< 0
    Size(std::int64_t constant);                                           // NOLINT: a number is a size
    Size(Rational constant);                                               // NOLINT
    Size(Symbol symbol, Rational exponent = 1);                            // NOLINT
    static Size term(const Monomial& monomial, Rational coefficient = 1);  ///< of one term

    [[nodiscard]] const std::map<Monomial, Rational>& terms() const { return terms_; }  ///< coefficients non-zero
    [[nodiscard]] bool is_zero() const { return terms_.empty(); }
    [[nodiscard]] std::optional<Rational> as_constant() const;
    [[nodiscard]] std::vector<Symbol> symbols() const;  ///< ascending, without primes
    /// A single term raised to a rational power; nullopt for a sum (unless the exponent is a non-negative integer) and
    /// for a root of a negative coefficient.
    [[nodiscard]] std::optional<Size> pow(Rational exponent) const;
    [[nodiscard]] Size substitute(Symbol symbol, const Size& by) const;  ///< integer exponents, or a one-term `by`
    /// With each symbol but primes replaced by its image, all at once.
    [[nodiscard]] Size renamed(const std::function<Symbol(Symbol)>& image) const;
    /// Value with every symbol given by `value`; nullopt when one is missing.
    [[nodiscard]] std::optional<double> evaluate(const SymbolValues& value) const;

    Size& operator+=(const Size& other);
    Size& operator*=(const Size& other);
    friend bool operator==(const Size&, const Size&) = default;

private:
    std::map<Monomial, Rational> terms_;
};
Size operator+(Size a, const Size& b);
Size operator-(Size a, const Size& b);
Size operator*(Size a, const Size& b);
/// a / b for a one-term b; b of several terms throws InternalError.
Size operator/(const Size& a, const Size& b);

/// "2·q·d + 4·q·x·d²·M⁻¹": superscript exponents, fractions as M^(-1/2); `ascii` gives "2*q*d + 4*q*x*d^2*M^-1", which
/// the language's own size syntax reads back.
std::string to_string(const Size& size, const SymbolNames& names, bool ascii = false);

/// a·b, or nullopt past 2^62 (limits::max_size_product) or when one is negative.
std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b);

}  // namespace napkin
