// Sizes: exact rationals, the laws of the ring they form, substitution, evaluation, and how they print.
#include "algebra/size.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace napkin::test_size {
namespace {

SymbolTable table;

Size s(const std::string& name, Rational exponent = 1) { return {table(name), exponent}; }
std::string to_string(const Size& size, bool ascii = false) { return napkin::to_string(size, table.names(), ascii); }

std::optional<double> values(Symbol symbol) {
    const std::string name = table.names()(symbol);
    static const std::map<std::string, double> numbers{{"q", 7}, {"x", 5}, {"d", 3}, {"M", 16}, {"n", 12}};
    const auto at = numbers.find(name);
    return at == numbers.end() ? std::nullopt : std::optional(at->second);
}

TEST(Rational, LowestTermsAndOrder) {
    EXPECT_EQ(Rational(6, -4), Rational(-3, 2));
    EXPECT_EQ(Rational(0, -5), Rational(0));
    EXPECT_EQ(Rational(1, 2) + Rational(1, 3), Rational(5, 6));
    EXPECT_EQ(Rational(1, 2) - Rational(1, 2), Rational(0));
    EXPECT_EQ(Rational(2, 3) * Rational(3, 4), Rational(1, 2));
    EXPECT_EQ(Rational(2, 3) / Rational(-4, 3), Rational(-1, 2));
    EXPECT_LT(Rational(1, 3), Rational(1, 2));
    EXPECT_LT(Rational(-1, 2), Rational(-1, 3));
    EXPECT_TRUE(Rational(4, 2).is_integer());
    EXPECT_EQ(napkin::to_string(Rational(-3, 2)), "-3/2");
    EXPECT_EQ(Rational(3, 4).to_double(), 0.75);
}

TEST(Rational, WhatDoesNotFitIsAFault) {
    const Rational big(std::numeric_limits<std::int64_t>::max());
    EXPECT_THROW((void)(big + Rational(1)), std::logic_error);
    EXPECT_THROW((void)(big * big), std::logic_error);
    EXPECT_EQ(big * big.denominator() / big, Rational(1));
    EXPECT_THROW(Rational(1, 0), std::logic_error);
    EXPECT_THROW((void)(Rational(1) / Rational(0)), std::logic_error);
}

TEST(Size, PrintsWithThePapersLook) {
    const Size attention = Size(2) * s("q") * s("d") + Size(4) * s("q") * s("x") * s("d", 2) * s("M", -1);
    EXPECT_EQ(to_string(attention), "2·q·d + 4·q·x·d²·M⁻¹");
    EXPECT_EQ(to_string(attention, true), "2*q*d + 4*q*x*d^2*M^-1");
    EXPECT_EQ(to_string(Size(2) * s("a") * s("b") * s("c") * s("M", Rational(-1, 2)) + s("a") * s("c")),
              "a·c + 2·a·b·c·M^(-1/2)");
    EXPECT_EQ(to_string(s("n") - s("w") + 1), "n - w + 1");
    EXPECT_EQ(to_string(s("n") - s("w") + 1, true), "n - w + 1");
    EXPECT_EQ(to_string(Size()), "0");
    EXPECT_EQ(to_string(Size(-1) * s("q")), "-q");
    EXPECT_EQ(to_string(Size(Rational(1, 2)) * s("q")), "1/2·q");
    EXPECT_EQ(to_string(s("q", 12)), "q¹²");
    EXPECT_EQ(to_string(Size(-3)), "-3");
    EXPECT_EQ(to_string(Size(2) * s("q") * s("d") * s("g_q", -1)), "2·q·d·g_q⁻¹");
}

TEST(Size, EqualWhatIsEqual) {
    EXPECT_EQ((s("q") + s("x")) * (s("q") - s("x")), s("q", 2) - s("x", 2));
    EXPECT_EQ(s("q") - s("q"), Size());
    EXPECT_TRUE((s("q") * s("q", -1)).as_constant() == Rational(1));
    EXPECT_EQ(s("q", 0), Size(1));
    EXPECT_EQ(s("M", Rational(1, 2)) * s("M", Rational(1, 2)), s("M"));
    EXPECT_EQ(Size(0).as_constant(), Rational(0));
    EXPECT_EQ(s("q").as_constant(), std::nullopt);
    const std::vector<Symbol> sorted = [] {
        std::vector<Symbol> symbols{table("d"), table("q"), table("x")};
        std::sort(symbols.begin(), symbols.end());
        return symbols;
    }();
    EXPECT_EQ((s("q") * s("d") + s("x")).symbols(), sorted);
    Size twice = s("q") + 1;
    twice += twice;
    EXPECT_EQ(twice, Size(2) * s("q") + 2);
    twice *= twice;
    EXPECT_EQ(twice, Size(4) * s("q", 2) + Size(8) * s("q") + 4);
}

TEST(Size, Powers) {
    EXPECT_EQ((Size(4) * s("q", 2)).pow(Rational(1, 2)), Size(2) * s("q"));
    EXPECT_EQ((Size(8) * s("q", 3)).pow(Rational(2, 3)), Size(4) * s("q", 2));
    EXPECT_EQ((Size(2) * s("q")).pow(-2), Size(Rational(1, 4)) * s("q", -2));
    EXPECT_EQ(*Size(12).pow(Rational(1, 2)) * *Size(3).pow(Rational(1, 2)), Size(6));
    EXPECT_EQ(to_string(*Size(12).pow(Rational(1, 2))), "2·3^(1/2)");
    EXPECT_EQ(Size(-4).pow(Rational(1, 2)), std::nullopt);
    EXPECT_EQ((s("q") + 1).pow(2), s("q", 2) + Size(2) * s("q") + 1);
    EXPECT_EQ((s("q") + 1).pow(0), Size(1));
    EXPECT_EQ((s("q") + 1).pow(-1), std::nullopt);
    EXPECT_EQ((s("q") + 1).pow(Rational(1, 2)), std::nullopt);
    EXPECT_EQ(Size().pow(2), Size());
    EXPECT_EQ(Size().pow(-1), std::nullopt);
    EXPECT_EQ(Size(Rational(9, 16)).pow(Rational(-1, 2)), Size(Rational(4, 3)));
}

TEST(Size, Substitution) {
    EXPECT_EQ((s("i") * s("q") + s("i", 2)).substitute(table("i"), s("n") - s("w")),
              s("n") * s("q") - s("w") * s("q") + s("n", 2) - Size(2) * s("n") * s("w") + s("w", 2));
    EXPECT_EQ(s("g", Rational(1, 2)).substitute(table("g"), s("M") * s("d", -1)),
              s("M", Rational(1, 2)) * s("d", Rational(-1, 2)));
    EXPECT_EQ(s("q").substitute(table("x"), Size(3)), s("q"));
    EXPECT_THROW((void)s("g", -1).substitute(table("g"), s("a") + s("b")), std::logic_error);
}

TEST(Size, DivisionByOneTermOnly) {
    EXPECT_EQ((s("q") * s("d") + s("d")) / (Size(2) * s("d")), (s("q") + 1) / Size(2));
    EXPECT_THROW((void)(s("q") / (s("d") + 1)), std::logic_error);
    EXPECT_THROW((void)(s("q") / Size()), std::logic_error);
}

TEST(Size, Evaluation) {
    EXPECT_EQ((Size(2) * s("q") * s("d") + s("x") * s("M", Rational(-1, 2))).evaluate(values), 2 * 7 * 3 + 5.0 / 4);
    EXPECT_EQ((s("n") / Size(3)).evaluate(values), 4.0);
    EXPECT_EQ(s("nowhere").evaluate(values), std::nullopt);
    EXPECT_EQ(Size().evaluate(values), 0.0);
}

Size random_size(std::mt19937_64& random, bool one_term = false) {
    const char* const symbols[] = {"q", "x", "d", "M", "n"};
    Size sum;
    const int terms = one_term ? 1 : static_cast<int>(random() % 4);
    for (int t = 0; t < terms; ++t) {
        Size term = Rational(static_cast<std::int64_t>(random() % 9) - 4, static_cast<std::int64_t>(random() % 3) + 1);
        if (one_term && term.is_zero()) term = 1;
        for (const char* name : symbols) {
            if (random() % 3 == 0)
                term *= s(name, Rational(static_cast<std::int64_t>(random() % 7) - 3, random() % 2 ? 1 : 2));
        }
        sum += term;
    }
    return sum;
}

TEST(Size, LawsOfTheRingHoldForRandomSizes) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        std::mt19937_64 random(seed);
        const Size a = random_size(random), b = random_size(random), c = random_size(random), t = random_size(random, true);
        ASSERT_EQ(a + b, b + a) << seed;
        ASSERT_EQ((a + b) + c, a + (b + c)) << seed;
        ASSERT_EQ(a * b, b * a) << seed;
        ASSERT_EQ((a * b) * c, a * (b * c)) << seed;
        ASSERT_EQ(a * (b + c), a * b + a * c) << seed;
        ASSERT_EQ(a + Size(), a) << seed;
        ASSERT_EQ(a * Size(1), a) << seed;
        ASSERT_EQ(a - a, Size()) << seed;
        ASSERT_EQ(a * t / t, a) << seed;
        ASSERT_EQ(a.pow(2), a * a) << seed;
        ASSERT_EQ(t.pow(-1).value() * t, Size(1)) << seed;
        const double va = a.evaluate(values).value(), vb = b.evaluate(values).value(), vt = t.evaluate(values).value();
        const auto near = [&](double x, double y) {
            return std::fabs(x - y) <= 1e-9 * (1 + std::fabs(x) + std::fabs(va * vb));
        };
        ASSERT_TRUE(near((a + b).evaluate(values).value(), va + vb)) << seed;
        ASSERT_TRUE(near((a * b).evaluate(values).value(), va * vb)) << seed;
        ASSERT_TRUE(near((a / t).evaluate(values).value(), va / vt)) << seed;
        ASSERT_EQ(a.substitute(table("q"), s("q")), a) << seed;
        ASSERT_EQ((a * b).substitute(table("q"), s("y") * s("M")),
                  a.substitute(table("q"), s("y") * s("M")) * b.substitute(table("q"), s("y") * s("M")))
            << seed;
    }
}

TEST(CheckedProduct, StopsAtTwoToThe62) {
    EXPECT_EQ(checked_product(3, 4), 12);
    EXPECT_EQ(checked_product(0, 4), 0);
    EXPECT_EQ(checked_product(std::int64_t{1} << 31, std::int64_t{1} << 31), std::int64_t{1} << 62);
    EXPECT_EQ(checked_product((std::int64_t{1} << 31) + 1, std::int64_t{1} << 31), std::nullopt);
    EXPECT_EQ(checked_product(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()),
              std::nullopt);
    EXPECT_EQ(checked_product(-1, 4), std::nullopt);
}

}  // namespace
}  // namespace napkin::test_size
