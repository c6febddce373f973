// Expressions up to the laws of the reals.
#include "algebra/polynomial.hpp"

#include <gtest/gtest.h>

#include "diagram_builder.hpp"

namespace napkin::test_polynomial {
namespace {

const Expr a = read(ArrayId(0), {}), b = read(ArrayId(1), {}), c = read(ArrayId(2), {});

Expr op(BinaryOp f, const Expr& x, const Expr& y) { return binary(f, x, y); }

TEST(Polynomial, SpellingsOfOneValueAreEqual) {
    const Expr k = axis_size(0);
    EXPECT_TRUE(equal_over_reals((a - b) / c, a / c - b * (constant(1) / c)));
    EXPECT_TRUE(equal_over_reals(a * op(BinaryOp::pow, k, constant(-0.5)), a / unary(UnaryOp::sqrt, k)));
    EXPECT_TRUE(equal_over_reals((a - b) * (a - b), op(BinaryOp::pow, a - b, constant(2))));
    EXPECT_TRUE(equal_over_reals(unary(UnaryOp::exp, a + b), unary(UnaryOp::exp, b + a)));
    EXPECT_TRUE(equal_over_reals(a - (b - c), c + (a - b)));
    EXPECT_TRUE(equal_over_reals(a * constant(2) - a - a, constant(0)));
}

TEST(Polynomial, DifferentValuesAreNot) {
    EXPECT_FALSE(equal_over_reals(a - b, b - a));
    EXPECT_FALSE(equal_over_reals(a * b, a + b));
    // The root of a square is the absolute value.
    EXPECT_FALSE(equal_over_reals(unary(UnaryOp::sqrt, a * a), a));
    EXPECT_FALSE(equal_over_reals(op(BinaryOp::pow, a * b, constant(0.5)), a * b));
}

TEST(Polynomial, WritesOutWhatIsLeft) {
    const ExprNames names{[](AxisId) { return "k"; },
                          [](ArrayId id) { return std::string(1, static_cast<char>('a' + id)); }};
    const auto text = [&](const Expr& e) { return to_string(to_expr(polynomial(e)), names); };
    EXPECT_EQ(text((a + b) - a), "b");
    EXPECT_EQ(text(b * c / c), "b");
    EXPECT_EQ(text(a - a), "0");
    EXPECT_EQ(text(constant(0) - a), "-a");
    const auto left = quotient(polynomial(a * b * constant(6)), polynomial(b * constant(2)));
    ASSERT_TRUE(left.has_value());
    EXPECT_EQ(to_string(to_expr(*left), names), "3 * a");
    EXPECT_FALSE(quotient(polynomial(a), polynomial(a + b)).has_value());
}

}  // namespace
}  // namespace napkin::test_polynomial
