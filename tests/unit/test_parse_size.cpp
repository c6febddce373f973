// Formulas read: what sizes print reads back, in both forms; people's own spellings; what is no formula is pointed at.
#include "study/parse_size.hpp"

#include <gtest/gtest.h>

#include <random>

namespace napkin::test_parse_size {
namespace {

SymbolTable table;

Size s(const std::string& name, Rational exponent = 1) { return {table(name), exponent}; }
std::string to_string(const Size& size, bool ascii = false) { return napkin::to_string(size, table.names(), ascii); }

Size read(const std::string& text) {
    const auto parsed = parse_size(text, table);
    if (const auto* error = std::get_if<SizeSyntaxError>(&parsed)) {
        ADD_FAILURE() << text << ": " << error->message << " at " << error->at;
        return {};
    }
    return std::get<Size>(parsed);
}

TEST(ParseSize, ReadsThePapersFormulas) {
    const Size matmul = Size(2) * s("a") * s("b") * s("c") * s("M", Rational(-1, 2)) + s("a") * s("c");
    for (const char* text :
         {"2·a·b·c·M^(-1/2) + a·c", "a*c + 2*a*b*c*M^-½", "2 · a·b·c · M^−½ + a·c", "a·(c + 2·b·c·M^(-1/2))"})
        EXPECT_EQ(read(text), matmul) << text;
    EXPECT_EQ(read("4·x·q·d²·M⁻¹ + 2·q·d"), read("2*q*d + 4*q*x*d^2/M"));
    EXPECT_EQ(read("g_q·d' - (n − w + 1)"), s("g_q") * s("d'") - s("n") + s("w") - 1);
    EXPECT_EQ(read("(a + b)²"), read("a^2 + 2*a*b + b^2"));
    EXPECT_EQ(read("1/2·q"), Size(Rational(1, 2)) * s("q"));
    EXPECT_EQ(read("q¹²/(2·d)"), Size(Rational(1, 2)) * s("q", 12) * s("d", -1));
    EXPECT_EQ(read("-3"), Size(-3));
    EXPECT_EQ(read("0"), Size());
}

TEST(ParseSize, WhatPrintsReadsBack) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        std::mt19937 random(seed);
        const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
        Size size;
        for (int terms = draw(0, 5); terms > 0; --terms) {
            Size term = Rational(draw(-9, 9), draw(1, 4));
            for (const char* symbol : {"q", "x", "d", "g_q", "M", "s_x"})
                if (draw(0, 2) == 0) term *= s(symbol, Rational(draw(-12, 12), draw(1, 3)));
            size += term;
        }
        EXPECT_EQ(read(to_string(size)), size) << to_string(size) << ", seed " << seed;
        EXPECT_EQ(read(to_string(size, true)), size) << to_string(size, true) << ", seed " << seed;
    }
}

TEST(ParseSize, SaysWhereItStopsBeingAFormula) {
    const auto at = [](const std::string& text) {
        const auto parsed = parse_size(text, table);
        EXPECT_TRUE(std::holds_alternative<SizeSyntaxError>(parsed)) << text;
        return std::holds_alternative<SizeSyntaxError>(parsed) ? std::get<SizeSyntaxError>(parsed).at : std::size_t{999};
    };
    EXPECT_EQ(at(""), 0U);
    EXPECT_EQ(at("a +"), 3U);
    EXPECT_EQ(at("a b"), 2U);
    EXPECT_EQ(at("(a"), 0U);
    EXPECT_EQ(at("a/(b + c)"), 3U);
    EXPECT_EQ(at("a/0"), 2U);
    EXPECT_EQ(at("(a + b)^-1"), 8U);
    EXPECT_EQ(at("a²^3"), 1U);
    EXPECT_EQ(at("a # b"), 2U);
    EXPECT_EQ(at("a^x"), 2U);
    EXPECT_EQ(at("9223372036854775808"), 0U);
    EXPECT_LT(at("9223372036854775807*9*a"), 999U);
    EXPECT_LT(at("2^64 * a"), 999U);
    EXPECT_LT(at("a^65"), 999U);
    EXPECT_LT(at(std::string(10000, '(')), 999U);
    EXPECT_EQ(at("\xff"), 0U);
    EXPECT_EQ(at("a⁻"), 4U);
}

TEST(ParseSize, RandomTextIsAFormulaOrAnError) {
    const std::vector<std::string> parts{"a",       "g_q", "2",    "9223372036854775807",
                                         "1/2",     "+",   "-",    "−",
                                         "·",       "*",   "/",    "^",
                                         "²",       "⁻",   "½",    "(",
                                         ")",       " ",   "\xc2", "^-1",
                                         "^(-1/2)", "⁻¹"};
    for (unsigned seed = 1; seed <= 5000; ++seed) {
        std::mt19937 random(seed);
        std::string text;
        for (unsigned count = random() % 12; count > 0; --count) text += parts[random() % parts.size()];
        const auto parsed = parse_size(text, table);
        if (const auto* size = std::get_if<Size>(&parsed)) {
            EXPECT_EQ(read(to_string(*size)), *size) << text << ", seed " << seed;
        } else {
            EXPECT_LE(std::get<SizeSyntaxError>(parsed).at, text.size()) << text << ", seed " << seed;
        }
    }
}

}  // namespace
}  // namespace napkin::test_parse_size
