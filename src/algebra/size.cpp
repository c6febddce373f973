#include "algebra/size.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

using Wide = __int128;

/// The rational in lowest terms; a numerator or denominator past 64 bits is an internal fault.
Rational reduced(Wide numerator, Wide denominator) {
    internal_check(denominator != 0, "a rational with denominator 0");
    if (denominator < 0) {
        numerator = -numerator;
        denominator = -denominator;
    }
    Wide a = numerator < 0 ? -numerator : numerator, b = denominator;
    while (b != 0) std::tie(a, b) = std::tuple(b, a % b);
    if (a > 1) {
        numerator /= a;
        denominator /= a;
    }
    constexpr Wide limit = INT64_MAX;
    internal_check(numerator <= limit && numerator >= -limit && denominator <= limit, "a rational past 64 bits");
    return {static_cast<std::int64_t>(numerator), static_cast<std::int64_t>(denominator)};
}

Rational integer_power(Rational base, std::int64_t exponent) {
    if (exponent < 0) return Rational(1) / integer_power(base, -exponent);
    Rational result = 1;
    if (base == Rational(0) || base == Rational(1)) return exponent == 0 ? Rational(1) : base;
    if (base == Rational(-1)) return exponent % 2 == 0 ? Rational(1) : base;
    for (std::int64_t i = 0; i < exponent; ++i)
        result = result * base;  // ends within 64 steps: by then it has overflowed
    return result;
}

bool is_prime(Symbol symbol) { return symbol.kind == SymbolKind::prime; }

/// Puts base^exponent into the term, whole powers into its coefficient. Numbers without a prime factor below 2^16 stay
/// whole.
void add_root(Monomial& monomial, Rational& coefficient, std::int64_t base, Rational exponent) {
    const auto add = [&](std::int64_t prime, Rational power) {
        const auto at = monomial.find({SymbolKind::prime, prime});
        if (at != monomial.end()) {
            power = power + at->second;
            monomial.erase(at);
        }
        std::int64_t whole = power.numerator() / power.denominator();
        if (power < Rational(whole)) --whole;
        coefficient = coefficient * integer_power(Rational(prime), whole);
        if (power != Rational(whole)) monomial.emplace(Symbol{SymbolKind::prime, prime}, power - Rational(whole));
    };
    for (std::int64_t prime = 2; prime * prime <= base && prime < (1 << 16); ++prime) {
        std::int64_t count = 0;
        for (; base % prime == 0; base /= prime) ++count;
        if (count > 0) add(prime, exponent * Rational(count));
    }
    if (base > 1) add(base, exponent);
}

/// a·b; what comes out of roots goes into the coefficient.
Monomial product(const Monomial& a, const Monomial& b, Rational& coefficient) {
    Monomial result = a;
    for (const auto& [symbol, exponent] : b) {
        if (is_prime(symbol)) {
            add_root(result, coefficient, symbol.id, exponent);
            continue;
        }
        const auto [at, added] = result.emplace(symbol, exponent);
        if (added) continue;
        at->second = at->second + exponent;
        if (at->second == Rational(0)) result.erase(at);
    }
    return result;
}

}  // namespace

// ---- rationals
// ------------------------------------------------------------

Rational::Rational(std::int64_t numerator, std::int64_t denominator) : n_(numerator), d_(denominator) {
    if (d_ != 1 && (d_ <= 0 || std::gcd(n_, d_) != 1)) *this = reduced(numerator, denominator);
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
    const Wide left = static_cast<Wide>(a.n_) * b.d_, right = static_cast<Wide>(b.n_) * a.d_;
    return left < right   ? std::strong_ordering::less
           : left > right ? std::strong_ordering::greater
                          : std::strong_ordering::equal;
}

Rational operator+(Rational a, Rational b) {
    return reduced(static_cast<Wide>(a.numerator()) * b.denominator() + static_cast<Wide>(b.numerator()) * a.denominator(),
                   static_cast<Wide>(a.denominator()) * b.denominator());
}
Rational operator-(Rational a, Rational b) {
    return reduced(static_cast<Wide>(a.numerator()) * b.denominator() - static_cast<Wide>(b.numerator()) * a.denominator(),
                   static_cast<Wide>(a.denominator()) * b.denominator());
}
Rational operator*(Rational a, Rational b) {
    return reduced(static_cast<Wide>(a.numerator()) * b.numerator(), static_cast<Wide>(a.denominator()) * b.denominator());
}
Rational operator/(Rational a, Rational b) {
    internal_check(b.numerator() != 0, "a rational divided by 0");
    return reduced(static_cast<Wide>(a.numerator()) * b.denominator(), static_cast<Wide>(a.denominator()) * b.numerator());
}

std::string to_string(Rational r) {
    return r.is_integer() ? std::to_string(r.numerator()) : fmt::format("{}/{}", r.numerator(), r.denominator());
}

// ---- sizes
// ------------------------------------------------------------

Size::Size(std::int64_t constant) : Size(Rational(constant)) {}

Size::Size(Rational constant) {
    if (constant != Rational(0)) terms_.emplace(Monomial{}, constant);
}

Size::Size(Symbol symbol, Rational exponent) {
    terms_.emplace(exponent == Rational(0) ? Monomial{} : Monomial{{symbol, exponent}}, 1);
}

Size Size::term(const Monomial& monomial, Rational coefficient) {
    Size term = coefficient;
    for (const auto& [symbol, exponent] : monomial) term *= Size(symbol, exponent);
    return term;
}

std::optional<Rational> Size::as_constant() const {
    if (terms_.empty()) return Rational(0);
    if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
    return std::nullopt;
}

std::vector<Symbol> Size::symbols() const {
    std::set<Symbol> found;
    for (const auto& [monomial, coefficient] : terms_)
        for (const auto& [symbol, exponent] : monomial)
            if (!is_prime(symbol)) found.insert(symbol);
    return {found.begin(), found.end()};
}

std::optional<Size> Size::pow(Rational exponent) const {
    if (exponent == Rational(0)) return Size(1);
    if (terms_.empty()) return exponent > Rational(0) ? std::optional<Size>(Size()) : std::nullopt;
    if (terms_.size() == 1) {
        const auto& [monomial, coefficient] = *terms_.begin();
        if (coefficient < Rational(0) && !exponent.is_integer()) return std::nullopt;
        Size result;
        Monomial raised;
        Rational factor = 1;
        for (const auto& [symbol, e] : monomial)
            is_prime(symbol) ? add_root(raised, factor, symbol.id, e * exponent)
                             : void(raised.emplace(symbol, e * exponent));
        if (exponent.is_integer()) {
            factor = factor * integer_power(coefficient, exponent.numerator());
        } else {
            add_root(raised, factor, coefficient.numerator(), exponent);
            add_root(raised, factor, coefficient.denominator(), Rational(0) - exponent);
        }
        result.terms_.emplace(std::move(raised), factor);
        return result;
    }
    constexpr std::int64_t most = 64;  // a sum to a higher power has no place in a size
    if (!exponent.is_integer() || exponent < Rational(0) || exponent > Rational(most)) return std::nullopt;
    Size result = 1;
    for (std::int64_t i = 0; i < exponent.numerator(); ++i) result *= *this;
    return result;
}

Size Size::substitute(Symbol symbol, const Size& by) const {
    Size result;
    for (const auto& [monomial, coefficient] : terms_) {
        const auto at = monomial.find(symbol);
        if (at == monomial.end()) {
            Size term;
            term.terms_.emplace(monomial, coefficient);
            result += term;
            continue;
        }
        const auto power = by.pow(at->second);
        internal_check(power.has_value(), "substitute: a sum to a power that is not a whole number");
        Size rest;
        Monomial others = monomial;
        others.erase(symbol);
        rest.terms_.emplace(std::move(others), coefficient);
        result += rest * *power;
    }
    return result;
}

Size Size::renamed(const std::function<Symbol(Symbol)>& image) const {
    Size result;
    for (const auto& [monomial, coefficient] : terms_) {
        Size term = coefficient;
        for (const auto& [symbol, exponent] : monomial)
            term *= Size(is_prime(symbol) ? symbol : image(symbol), exponent);
        result += term;
    }
    return result;
}

std::optional<double> Size::evaluate(const SymbolValues& value) const {
    double sum = 0;
    for (const auto& [monomial, coefficient] : terms_) {
        // The denominator last, so that whole results come out whole.
        double term = static_cast<double>(coefficient.numerator());
        for (const auto& [symbol, exponent] : monomial) {
            const auto base = is_prime(symbol) ? std::optional(static_cast<double>(symbol.id)) : value(symbol);
            if (!base) return std::nullopt;
            if (exponent == Rational(-1)) {
                term /= *base;
            } else {
                term *= exponent == Rational(1) ? *base : std::pow(*base, exponent.to_double());
            }
        }
        sum += term / static_cast<double>(coefficient.denominator());
    }
    return sum;
}

Size& Size::operator+=(const Size& other) {
    if (&other == this) return *this *= Size(2);
    for (const auto& [monomial, coefficient] : other.terms_) {
        const auto [at, added] = terms_.emplace(monomial, coefficient);
        if (added) continue;
        at->second = at->second + coefficient;
        if (at->second == Rational(0)) terms_.erase(at);
    }
    return *this;
}

Size& Size::operator*=(const Size& other) {
    Size result;
    for (const auto& [a, ca] : terms_) {
        for (const auto& [b, cb] : other.terms_) {
            Size term;
            Rational coefficient = ca * cb;
            Monomial factors = product(a, b, coefficient);
            term.terms_.emplace(std::move(factors), coefficient);
            result += term;
        }
    }
    return *this = std::move(result);
}

Size operator+(Size a, const Size& b) { return a += b; }
Size operator-(Size a, const Size& b) { return a += b * Size(-1); }
Size operator*(Size a, const Size& b) { return a *= b; }

Size operator/(const Size& a, const Size& b) {
    internal_check(b.terms().size() == 1, "a size divided by a sum");
    return a * *b.pow(-1);
}

// ---- printing
// ------------------------------------------------------------

namespace {

std::string superscript(std::int64_t number) {
    static constexpr std::array<std::string_view, 10> digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    std::string out;
    for (char c : std::to_string(number)) out += c == '-' ? std::string_view("⁻") : digits[at(c - '0')];
    return out;
}

std::string print_power(const std::string& symbol, Rational exponent, bool ascii) {
    if (exponent == Rational(1)) return symbol;
    if (!exponent.is_integer()) return symbol + "^(" + to_string(exponent) + ")";
    return symbol + (ascii ? "^" + to_string(exponent) : superscript(exponent.numerator()));
}

/// A monomial with its symbols' names, as it is printed and ordered.
using NamedFactors = std::map<std::string, Rational>;

/// Factors as the paper writes them: what is multiplied before what is divided by, letters in alphabetical order but
/// for d, the head size, which comes last.
std::string print_factors(const NamedFactors& named, bool ascii) {
    std::vector<std::pair<std::string, Rational>> factors(named.begin(), named.end());
    const auto rank = [](const auto& factor) {
        return std::pair(factor.second < Rational(0), factor.first == "d" || factor.first.ends_with("_d"));
    };
    stable_sort(factors, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    std::string out;
    for (const auto& [symbol, exponent] : factors) {
        if (!out.empty()) out += ascii ? "*" : "·";
        out += print_power(symbol, exponent, ascii);
    }
    return out;
}

}  // namespace

std::string to_string(const Size& size, const SymbolNames& names, bool ascii) {
    if (size.is_zero()) return "0";
    // Terms of higher degree last, as in 2·q·d + 4·q·x·d²·M⁻¹, and a constant at the very end: n − w + 1.
    const auto rank = [](const NamedFactors& factors, Rational coefficient) {
        std::int64_t symbols = 0;
        for (const auto& entry : factors) symbols += entry.second.is_integer() ? std::abs(entry.second.numerator()) : 1;
        return std::tuple(factors.empty(), coefficient < Rational(0), symbols);
    };
    std::map<std::pair<std::tuple<bool, bool, std::int64_t>, NamedFactors>, Rational> terms;
    for (const auto& [monomial, coefficient] : size.terms()) {
        NamedFactors factors;
        for (const auto& [symbol, exponent] : monomial) {
            const auto name = is_prime(symbol) ? std::to_string(symbol.id) : names(symbol);
            internal_check(factors.emplace(name, exponent).second, "two symbols of a size have one name");
        }
        terms.emplace(std::pair(rank(factors, coefficient), factors), coefficient);
    }
    std::string out;
    for (const auto& [key, coefficient] : terms) {
        const NamedFactors& factors = key.second;
        const bool negative = coefficient < Rational(0);
        const Rational magnitude = negative ? Rational(0) - coefficient : coefficient;
        if (!out.empty()) {
            out += negative ? " - " : " + ";
        } else if (negative) {
            out += "-";
        }
        if (factors.empty()) {
            out += to_string(magnitude);
        } else {
            if (magnitude != Rational(1)) out += to_string(magnitude) + (ascii ? "*" : "·");
            out += print_factors(factors, ascii);
        }
    }
    return out;
}

std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b) {
    if (a < 0 || b < 0) return std::nullopt;
    const Wide product = static_cast<Wide>(a) * b;
    if (product > limits::max_size_product) return std::nullopt;
    return static_cast<std::int64_t>(product);
}

}  // namespace napkin
