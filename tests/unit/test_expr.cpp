// Scalar expressions: structure, meaning, printing, and simplification tried on random expressions.
#include "algebra/expr.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_set>

#include "algebra/value_class.hpp"
#include "diagram/evaluate.hpp"
#include "diagram_builder.hpp"

namespace napkin::test_expr {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

const ExprNames names{[](AxisId i) { return std::string(1, static_cast<char>('i' + i)); },
                      [](ArrayId i) { return std::string(1, static_cast<char>('A' + i)); }};

Expr neg(const Expr& a) { return unary(UnaryOp::neg, a); }
Expr power(const Expr& a, const Expr& b) { return binary(BinaryOp::pow, a, b); }
Expr num(double value) { return constant(value); }
const Expr a = read(ArrayId(0), {Affine::axis(0)});
const Expr b = read(ArrayId(1), {Affine::axis(1), Affine::axis(0)});
const Expr i = axis_index(0), j = axis_index(1);

std::string text(const Expr& e) { return to_string(e, names); }

TEST(Affine, ArithmeticKeepsTheNormalForm) {
    Affine x = Affine::axis(3) + Affine::axis(1) * 2;
    x.constant = 5;
    EXPECT_EQ(to_string(x, names), "2*j + l + 5");
    EXPECT_EQ(x.coefficient(1), 2);
    EXPECT_EQ(x.coefficient(0), 0);
    EXPECT_EQ(x - x, Affine{});
    EXPECT_EQ(to_string(Affine{}, names), "0");
    EXPECT_EQ(to_string(Affine::axis(0) * -1 - Affine::axis(2) * 3, names), "-i - 3*k");
    EXPECT_TRUE(Affine::axis(2).is_axis(2));
    EXPECT_EQ(Affine::axis(2).single_axis(), 2);
    EXPECT_EQ((Affine::axis(2) * 2).single_axis(), -1);
    EXPECT_EQ(x * 0, Affine{});
}

TEST(Affine, MadCoefficientsSaturate) {
    const Affine x = Affine::axis(0) * std::numeric_limits<std::int64_t>::max() * std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ((x + x).coefficient(0), std::int64_t{1} << 62);
    EXPECT_EQ((x * -5).coefficient(0), -(std::int64_t{1} << 62));
    EXPECT_EQ(x - x, Affine{});
}

TEST(Expr, EqualityIsStructural) {
    EXPECT_TRUE(equal(a * b + num(1), a * b + num(1)));
    EXPECT_FALSE(equal(a * b, b * a));
    EXPECT_FALSE(equal(a + b, a - b));
    EXPECT_FALSE(equal(unary(UnaryOp::exp, a), unary(UnaryOp::log, a)));
    EXPECT_FALSE(equal(cast(DType::f16, a), cast(DType::bf16, a)));
    EXPECT_FALSE(equal(read(ArrayId(0), {Affine::axis(0)}), read(ArrayId(0), {Affine::axis(1)})));
    EXPECT_FALSE(equal(axis_index(0), axis_size(0)));
    EXPECT_TRUE(equal(num(nan), num(nan)));
    EXPECT_FALSE(equal(num(0.0), num(-0.0)));
    EXPECT_TRUE(equal(Expr(), Expr()));
    EXPECT_FALSE(equal(a, Expr()));
    EXPECT_TRUE(equal(select(i, a, b), select(i, a, b)));
    EXPECT_FALSE(equal(select(i, a, b), select(i, b, a)));
    std::unordered_set<Expr, ExprHash, ExprEqual> set{a + b, a + b, b + a};
    EXPECT_EQ(set.size(), 2U);
}

TEST(Expr, Questions) {
    const Expr e = select(binary(BinaryOp::le, axis_index(3), num(2)), b * axis_size(4),
                          read(ArrayId(5), {Affine::axis(2) + Affine::axis(0)}));
    EXPECT_EQ(free_axes(e), (std::vector<AxisId>{0, 1, 2, 3}));
    EXPECT_EQ(read_arrays(e), (std::vector<ArrayId>{1, 5}));
    EXPECT_TRUE(depends_on_axis(e, 2));
    EXPECT_FALSE(depends_on_axis(e, 4));
    EXPECT_TRUE(reads_array(e, 5));
    EXPECT_FALSE(reads_array(e, 0));
    EXPECT_EQ(count_nodes(e), 8U);
    EXPECT_EQ(children(e).size(), 3U);
    EXPECT_TRUE(equal(with_children(e, children(e)), e));
    EXPECT_THROW((void)with_children(a + b, {a}), std::logic_error);
}

TEST(Expr, TransformRewritesBottomUpAndKeepsWhatStays) {
    const Expr e = (a + num(1)) * (b + num(1));
    const Expr f = transform(e, [](const Expr& n) { return as<Constant>(n) ? constant(as<Constant>(n)->value + 1) : n; });
    EXPECT_EQ(text(f), "(A[i] + 2) * (B[j, i] + 2)");
    const Expr g = transform(e, [](const Expr& n) { return equal(n, b) ? a : n; });
    EXPECT_EQ(text(g), "(A[i] + 1) * (A[i] + 1)");
    EXPECT_EQ(as<Binary>(g)->a, as<Binary>(e)->a);  // the left side is the same object
    EXPECT_EQ(transform(e, [](const Expr& n) { return n; }), e);
}

TEST(Expr, VisitGoesParentsFirstInOrder) {
    std::string seen;
    visit((a + num(1)) * unary(UnaryOp::exp, b), [&](const Expr& n) { seen += text(n) + ";"; });
    EXPECT_EQ(seen, "(A[i] + 1) * exp(B[j, i]);A[i] + 1;A[i];1;exp(B[j, i]);B[j, i];");
}

/// A graph of 200 nodes that stands for a tree of 2^200.
Expr doubled(int times) {
    Expr e = a;
    for (int k = 0; k < times; ++k) e = e + e;
    return e;
}

TEST(Expr, SharedGraphsTakeNoMoreThanTheirNodes) {
    const Expr e = doubled(200), f = doubled(200);
    EXPECT_TRUE(equal(e, f));
    EXPECT_GT(count_nodes(e), std::size_t{1} << 60);
    int nodes = 0;
    visit(e, [&](const Expr&) { ++nodes; });
    EXPECT_EQ(nodes, 201);
    EXPECT_EQ(free_axes(e), std::vector<AxisId>{0});
    EXPECT_FALSE(is_positive(e));
    EXPECT_TRUE(equal(simplify(e), e));
    EXPECT_TRUE(depends_on_axis(transform(e, [](const Expr& n) { return equal(n, a) ? b : n; }), 1));
}

TEST(Expr, DeepTreesNeedNoDeepStack) {
    Expr e = a, f = a;
    for (int k = 0; k < 200000; ++k) {
        e = unary(UnaryOp::tanh, e);
        f = unary(UnaryOp::tanh, f);
    }
    EXPECT_TRUE(equal(e, f));
    EXPECT_EQ(count_nodes(e), 200001U);
    EXPECT_TRUE(equal(simplify(e), e));
    EXPECT_EQ(text(e).size(), 200000U * 6 + 4);
    EXPECT_FALSE(is_positive(e));
}

TEST(Expr, ValuesOfOperators) {
    EXPECT_EQ(apply(UnaryOp::rsqrt, 4), 0.5);
    EXPECT_EQ(apply(UnaryOp::floor, -1.5), -2);
    EXPECT_EQ(apply(UnaryOp::logical_not, 0), 1);
    EXPECT_EQ(apply(UnaryOp::logical_not, 3), 0);
    EXPECT_EQ(apply(UnaryOp::erf, 0), 0);
    EXPECT_EQ(apply(BinaryOp::pow, 2, -1), 0.5);
    EXPECT_EQ(apply(BinaryOp::le, 2, 2), 1);
    EXPECT_EQ(apply(BinaryOp::ne, nan, nan), 1);
    EXPECT_EQ(apply(BinaryOp::logical_and, 2, 3), 1);
    EXPECT_EQ(apply(BinaryOp::logical_or, 0, 0), 0);
    for (BinaryOp op : {BinaryOp::min, BinaryOp::max}) {
        EXPECT_TRUE(std::isnan(apply(op, nan, 1)));
        EXPECT_TRUE(std::isnan(apply(op, 1, nan)));
    }
    EXPECT_EQ(apply(BinaryOp::max, -inf, 1), 1);
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
        EXPECT_EQ(apply(op, identity(op), 3), 3);
        EXPECT_TRUE(std::isnan(apply(op, nan, 1)));
        EXPECT_TRUE(std::isnan(apply(op, 1, nan)));
    }
}

TEST(ExprPrint, FewestParenthesesThatKeepTheTree) {
    EXPECT_EQ(text(a + b + a), "A[i] + B[j, i] + A[i]");
    EXPECT_EQ(text(a + (b + a)), "A[i] + (B[j, i] + A[i])");
    EXPECT_EQ(text(a - (b - a)), "A[i] - (B[j, i] - A[i])");
    EXPECT_EQ(text((a + b) * a), "(A[i] + B[j, i]) * A[i]");
    EXPECT_EQ(text(a * b / a), "A[i] * B[j, i] / A[i]");
    EXPECT_EQ(text(a * (b / a)), "A[i] * (B[j, i] / A[i])");
    EXPECT_EQ(text(power(a, power(b, a))), "A[i]^B[j, i]^A[i]");
    EXPECT_EQ(text(power(power(a, b), a)), "(A[i]^B[j, i])^A[i]");
    EXPECT_EQ(text(power(a + b, num(2))), "(A[i] + B[j, i])^2");
    EXPECT_EQ(text(power(axis_size(2), num(-0.5))), "size(k)^-0.5");
    EXPECT_EQ(text(power(num(-2), num(2))), "(-2)^2");
    EXPECT_EQ(text(neg(power(num(2), num(2)))), "-2^2");
    EXPECT_EQ(text(power(a, neg(b))), "A[i]^-B[j, i]");
    EXPECT_EQ(text(power(neg(a), b)), "(-A[i])^B[j, i]");
    EXPECT_EQ(text(neg(num(2))), "-(2)");
    EXPECT_EQ(text(neg(num(-2))), "-(-2)");
    EXPECT_EQ(text(neg(neg(a))), "--A[i]");
    EXPECT_EQ(text(neg(a + b)), "-(A[i] + B[j, i])");
    EXPECT_EQ(text(neg(a * b)), "-(A[i] * B[j, i])");
    EXPECT_EQ(text(neg(a) * b), "-A[i] * B[j, i]");
    EXPECT_EQ(text(a - num(-2)), "A[i] - -2");
    EXPECT_EQ(text(num(-2) * a), "-2 * A[i]");
}

TEST(ExprPrint, ComparisonsLogicCallsAndCasts) {
    const Expr le = binary(BinaryOp::le, j, i), lt = binary(BinaryOp::lt, i, num(3));
    EXPECT_EQ(text(select(le, a, num(-inf))), "where(j <= i, A[i], -inf)");
    EXPECT_EQ(text(binary(BinaryOp::logical_or, binary(BinaryOp::logical_and, le, lt), lt)),
              "j <= i and i < 3 or i < 3");
    EXPECT_EQ(text(binary(BinaryOp::logical_and, le, binary(BinaryOp::logical_or, lt, lt))),
              "j <= i and (i < 3 or i < 3)");
    EXPECT_EQ(text(unary(UnaryOp::logical_not, le)), "not j <= i");
    EXPECT_EQ(text(unary(UnaryOp::logical_not, binary(BinaryOp::logical_and, le, lt))), "not (j <= i and i < 3)");
    EXPECT_EQ(text(unary(UnaryOp::logical_not, le) + a), "(not j <= i) + A[i]");
    EXPECT_EQ(text(binary(BinaryOp::eq, le, lt)), "(j <= i) == (i < 3)");
    EXPECT_EQ(text(le * a), "(j <= i) * A[i]");
    EXPECT_EQ(text(cast(DType::f16, a + b)), "f16(A[i] + B[j, i])");
    EXPECT_EQ(text(unary(UnaryOp::exp, a - b)), "exp(A[i] - B[j, i])");
    EXPECT_EQ(text(binary(BinaryOp::max, a, num(0))), "max(A[i], 0)");
    EXPECT_EQ(text(binary(BinaryOp::max, i, j)), "max((i), j)");
    EXPECT_EQ(text(read(ArrayId(2), {})), "C");
    EXPECT_EQ(to_string(a + b, names, true), "(A[i] + B[j, i])");
    EXPECT_EQ(to_string(a * b, names, true), "A[i] * B[j, i]");
}

TEST(ExprPrint, ConstantsReadBackBitForBit) {
    std::mt19937_64 random(3);
    for (int k = 0; k < 2000; ++k) {
        const double value = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 200) - 150);
        EXPECT_EQ(std::strtod(text(num(value)).c_str(), nullptr), value);
    }
    EXPECT_EQ(text(num(4096)), "4096");
    EXPECT_EQ(text(num(0.5)), "0.5");
    EXPECT_EQ(text(num(-0.0)), "-0");
    EXPECT_EQ(text(num(inf)), "inf");
    EXPECT_EQ(text(num(nan)), "nan");
}

TEST(Simplify, Identities) {
    const Expr x = a, zero = num(0), one = num(1), le = binary(BinaryOp::le, j, i);
    const auto is = [&](const Expr& e, const Expr& simple) { EXPECT_EQ(text(simplify(e)), text(simple)) << text(e); };
    is(x + zero, x);
    is(zero + x, x);
    is(x - zero, x);
    is(zero - x, neg(x));
    is(x - x, x - x);  // NaN where x is infinite
    is(axis_size(0) - axis_size(0), zero);
    is(x + neg(b), x - b);
    is(neg(x) + b, b - x);
    is(x - neg(b), x + b);
    is(x + neg(x), x - x);
    is(x * one, x);
    is(one * x, x);
    is(x * num(-1), neg(x));
    is(neg(x) * neg(b), x * b);
    is(x / one, x);
    is(x / x, x / x);  // NaN where x is 0
    is(axis_size(0) / axis_size(0), one);
    is(neg(x) / neg(b), x / b);
    is(neg(neg(x)), x);
    is(neg(x - b), b - x);
    is(zero * num(5), zero);
    is(zero * axis_size(0), zero);
    is(zero * x, zero * x);  // an infinite x would show
    is(unary(UnaryOp::exp, unary(UnaryOp::log, x)), x);
    is(unary(UnaryOp::log, unary(UnaryOp::exp, x)), x);
    is(unary(UnaryOp::log1p, unary(UnaryOp::expm1, x)), x);
    is(unary(UnaryOp::exp2, unary(UnaryOp::log2, x)), x);
    is(unary(UnaryOp::round, unary(UnaryOp::trunc, x)), unary(UnaryOp::trunc, x));
    is(unary(UnaryOp::ceil, axis_index(0)), axis_index(0));
    is(power(x, one), x);
    is(power(x, zero), one);
    is(power(one, x), one);
    is(num(2) + num(3) * num(4), num(14));
    is(unary(UnaryOp::abs, neg(x)), unary(UnaryOp::abs, x));
    is(binary(BinaryOp::max, x, x), x);
    is(binary(BinaryOp::max, x, num(-inf)), x);
    is(binary(BinaryOp::min, num(inf), x), x);
    is(binary(BinaryOp::max, x, num(inf)), binary(BinaryOp::max, x, num(inf)));
    is(select(one, x, b), x);
    is(select(zero, x, b), b);
    is(select(le, x, x), x);
    is(select(binary(BinaryOp::le, i, i), x, b), x);
    is(binary(BinaryOp::le, x, x), binary(BinaryOp::le, x, x));  // NaN is not
    is(binary(BinaryOp::ne, le, zero), le);
    is(binary(BinaryOp::ne, x, zero), binary(BinaryOp::ne, x, zero));
    is(binary(BinaryOp::logical_and, one, le), le);
    is(binary(BinaryOp::logical_and, le, zero), zero);
    is(binary(BinaryOp::logical_or, zero, le), le);
    is(binary(BinaryOp::logical_or, x, num(2)), one);
    is(binary(BinaryOp::logical_and, one, x), binary(BinaryOp::logical_and, one, x));  // 3 is true but not 1
    is(unary(UnaryOp::logical_not, unary(UnaryOp::logical_not, le)), le);
    is(cast(DType::f16, cast(DType::f16, x)), cast(DType::f16, x));
    is(cast(DType::f64, unary(UnaryOp::exp, x)), unary(UnaryOp::exp, x));
    is(cast(DType::f64, x), cast(DType::f64, x));  // where A holds integers this makes them real
    is(cast(DType::f16, num(0.5)), num(0.5));
    is(cast(DType::f16, num(0.1)), cast(DType::f16, num(0.1)));
    is((x + zero) * (one + zero), x);
    is(unary(UnaryOp::exp, (x * one) - (b + zero)) * b, unary(UnaryOp::exp, x - b) * b);
}

/// Any operator but // and %. By zero these give 0 for integers and nothing finite for real numbers. An identity may
/// turn one into the other where the types of arrays are not known.
BinaryOp any_operator(int n) { return static_cast<BinaryOp>(n < static_cast<int>(BinaryOp::floor_div) ? n : n + 2); }

/// A random expression over two arrays and two axes.
Expr random_expr(std::mt19937_64& random, int depth) {
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
    if (depth == 0 || pick(6) == 0) {
        switch (pick(6)) {
            case 0: return a;
            case 1: return b;
            case 2: return axis_index(AxisId::of(pick(2)));
            case 3: return axis_size(AxisId::of(pick(2)));
            default: {
                const double values[] = {0, 1, -1, 2, -0.5, 3, inf, -inf, 0.1, -0.0};
                return num(values[pick(10)]);
            }
        }
    }
    const auto sub = [&] { return random_expr(random, depth - 1); };
    switch (pick(8)) {
        case 0: return unary(static_cast<UnaryOp>(pick(12)), sub());
        case 1: return select(sub(), sub(), sub());
        case 2: return cast(pick(2) ? DType::f32 : DType::i32, sub());
        case 3: return neg(sub());
        case 4: {
            const Expr twice = sub();
            return binary(any_operator(pick(15)), twice, twice);
        }
        default: return binary(any_operator(pick(15)), sub(), sub());
    }
}

struct Field {
    Diagram d;
    Extents extents{3, 4};
    Values values;
    Field() {
        d.axes = {{"i", Size(3), {}}, {"j", Size(4), {}}};
        add_array(d, "A", {0}, DType::f64, ArrayRole::input);
        add_array(d, "B", {1, 0}, DType::f64, ArrayRole::input);
        d.inputs = {0, 1};
        values = random_inputs(d, extents, 5);
    }
    [[nodiscard]] double at(const Expr& e, std::int64_t x, std::int64_t y) const {
        Kinds kinds = kinds_of(d);
        return evaluate_at(e, kinds, d, extents, values, {x, y}).as_real();
    }
};

TEST(Simplify, KeepsEveryFiniteValueOfRandomExpressions) {
    const Field field;
    int finite = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        std::mt19937_64 random(seed);
        const Expr e = random_expr(random, 5), s = simplify(e);
        ASSERT_LE(count_nodes(s), count_nodes(e)) << seed;
        ASSERT_TRUE(equal(simplify(s), s)) << "seed " << seed << ": " << text(e) << " gives " << text(s);
        for (std::int64_t x = 0; x < 3; ++x) {
            for (std::int64_t y = 0; y < 4; ++y) {
                const double was = field.at(e, x, y), is = field.at(s, x, y);
                // Infinite parts are part of the game; large finite ones lose every digit, and NaN hides in
                // comparisons.
                bool tame = std::isfinite(was);
                visit(e, [&](const Expr& n) {
                    const double part = field.at(n, x, y);
                    tame = tame && (std::fabs(part) < 1e9 || std::isinf(part)) && (part == 0 || std::fabs(part) > 1e-9);
                });
                if (!tame) continue;
                ++finite;
                ASSERT_NEAR(was, is, 1e-6 * std::max(1.0, std::fabs(was)))
                    << "seed " << seed << ": " << text(e) << " gives " << text(s);
            }
        }
    }
    EXPECT_GT(finite, 5000);
}

TEST(ValueClass, HoldsEveryValueOfRandomExpressions) {
    const Field field;
    std::array<int, 6> seen{};  // by kind, where it was the value
    int narrowed = 0;
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        std::mt19937_64 random(seed);
        const Expr e = random_expr(random, 4);
        const ValueClass kinds = value_class(e, [](ArrayId) { return ValueClass::finite(); });
        narrowed += kinds != ValueClass::any();
        for (std::int64_t x = 0; x < 3; ++x) {
            for (std::int64_t y = 0; y < 4; ++y) {
                // What overflows, underflows or wraps on the way is left out: the classes do not follow sizes.
                bool tame = true;
                visit(e, [&](const Expr& n) {
                    const double part = field.at(n, x, y);
                    tame = tame && !(std::fabs(part) > 300 && std::isfinite(part)) &&
                           (part == 0 || !(std::fabs(part) < 1e-9));
                    const auto* operation = as<Binary>(n);
                    if (!operation || operation->op != BinaryOp::pow) return;
                    const double base = field.at(operation->a, x, y), exponent = field.at(operation->b, x, y);
                    const bool beyond = std::isfinite(base) && base != 0 && std::isfinite(exponent) &&
                                        (std::isinf(part) || part == 0);
                    tame = tame && !beyond;
                });
                if (!tame) continue;
                const double value = field.at(e, x, y);
                const ValueClass is = value_class(value);
                for (std::size_t kind = 0; kind < seen.size(); ++kind) seen[kind] += is.bits() == 1U << kind;
                ASSERT_EQ(kinds | is, kinds) << "seed " << seed << ": " << text(e) << " is " << value;
            }
        }
    }
    for (const int times : seen) EXPECT_GT(times, 100);
    EXPECT_GT(narrowed, 3000);
}

TEST(ValueClass, ReductionsAndGuards) {
    const ValueClass any_number = ValueClass::finite(), masked = any_number | value_class(-inf);
    EXPECT_TRUE(reduced(ReduceOp::sum, any_number).is_finite());
    EXPECT_EQ(reduced(ReduceOp::sum, masked), masked);
    EXPECT_TRUE(reduced(ReduceOp::sum, masked | value_class(inf)).has(ValueClass::undefined));
    EXPECT_TRUE(reduced(ReduceOp::prod, masked).has(ValueClass::undefined));
    EXPECT_TRUE(reduced(ReduceOp::prod, masked).has(ValueClass::infinite));
    EXPECT_EQ(reduced(ReduceOp::max, masked), masked);
    EXPECT_EQ(reduced(ReduceOp::sum, value_class(1)), value_class(1));
    const auto of = [&](const Expr& e) { return value_class(e, [&](ArrayId) { return masked; }); };
    EXPECT_EQ(of(a), masked);
    EXPECT_EQ(of(select(binary(BinaryOp::eq, a, num(-inf)), num(0), a)), any_number);
    EXPECT_EQ(of(select(binary(BinaryOp::eq, unary(UnaryOp::abs, a), num(inf)), num(0), a)), any_number);
    EXPECT_EQ(of(select(binary(BinaryOp::eq, a, num(-inf)), num(0), b)), masked);
    EXPECT_TRUE(of(a - b).has(ValueClass::undefined));
    EXPECT_EQ(of(unary(UnaryOp::exp, a)), value_class(0) | value_class(1));
    EXPECT_FALSE(of(a * a).has(ValueClass::minus_infinite));
}

TEST(Positive, WhatIsProvedHolds) {
    EXPECT_TRUE(is_positive(unary(UnaryOp::exp, a)));
    EXPECT_TRUE(is_positive(axis_size(0)));
    EXPECT_TRUE(is_positive(power(axis_size(0), num(-0.5))));
    EXPECT_TRUE(is_positive(a * a + num(1e-5)));
    EXPECT_TRUE(is_positive(power(a, num(2)) + num(1e-5)));
    EXPECT_TRUE(is_positive(num(1) / (num(1) + unary(UnaryOp::exp, neg(a)))));
    EXPECT_TRUE(is_positive(binary(BinaryOp::max, a, num(1))));
    EXPECT_TRUE(is_positive(unary(UnaryOp::sqrt, unary(UnaryOp::abs, a) + num(1))));
    EXPECT_TRUE(is_positive(select(i, num(1), unary(UnaryOp::exp, a))));
    EXPECT_FALSE(is_positive(a));
    EXPECT_FALSE(is_positive(a * a));
    EXPECT_FALSE(is_positive(i));
    EXPECT_FALSE(is_positive(num(0)));
    EXPECT_FALSE(is_positive(num(nan)));
    EXPECT_FALSE(is_positive(unary(UnaryOp::exp, a) - num(1)));
    EXPECT_FALSE(is_positive(cast(DType::f16, unary(UnaryOp::exp, a))));
}

TEST(Positive, NoRandomExpressionIsProvedPositiveAndIsNot) {
    const Field field;
    int proved = 0;
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        std::mt19937_64 random(seed);
        const Expr e = random_expr(random, 3);
        if (!is_positive(e)) continue;
        ++proved;
        for (std::int64_t x = 0; x < 3; ++x) {
            for (std::int64_t y = 0; y < 4; ++y) {
                bool all_finite = true;
                visit(e, [&](const Expr& n) { all_finite = all_finite && std::fabs(field.at(n, x, y)) < 100; });
                if (!all_finite) continue;
                ASSERT_GT(field.at(e, x, y), 0) << "seed " << seed << ": " << text(e);
            }
        }
    }
    EXPECT_GT(proved, 200);
}

}  // namespace
}  // namespace napkin::test_expr
