// The bounds hold: operands moved inside of their intervals, the operation done in single precision, and the result is
// inside of the result's bound.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "algebra/power.hpp"
#include "algebra/scalar_function.hpp"
#include "check/bounded_reduce.hpp"

namespace napkin::test_bounded {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const Rounding single = rounding_of(DType::f32);

bool holds(const Bounded& bound, double x) {
    if (is_unbounded(bound)) return true;
    if (std::isnan(x)) return std::isnan(bound.value) || (bound.may & may_be_nan);
    if (x == infinity && (bound.may & may_be_infinite)) return true;
    if (x == -infinity && (bound.may & may_be_minus_infinite)) return true;
    return x == bound.value || std::abs(x - bound.value) <= bound.error;
}

/// Numbers of every size, and those at which operations have their edges.
class Draw {
public:
    explicit Draw(std::uint64_t seed) : random_(seed) {}
    double value() {
        switch (random_() % 12) {
            case 0: return 0;
            case 1: return 1;
            case 2: return infinity;
            case 3: return -infinity;
            case 4: return static_cast<double>(random_() % 9) - 4;
            case 5: return static_cast<float>(normal_(random_) * 1e38);
            case 6: return static_cast<float>(normal_(random_) * 1e-38);
            case 7: return static_cast<float>(normal_(random_) * 40);
            case 8: return nan;
            default: return static_cast<float>(normal_(random_));
        }
    }
    Bounded bounded() {
        Bounded x{value(), 0, 0};
        if (std::isfinite(x.value) && random_() % 2 == 0)
            x.error = std::abs(x.value) * std::pow(10, -static_cast<double>(random_() % 8));
        if (std::isfinite(x.value) && random_() % 8 == 0) x.error = 0.5;
        if (random_() % 16 == 0) x.may = static_cast<std::uint8_t>(random_() % 8);
        return x;
    }
    /// A single-precision number that the bound admits.
    float inside(const Bounded& x) {
        if (x.may != 0 && random_() % 2 == 0) {
            if (x.may & may_be_infinite) return static_cast<float>(infinity);
            return x.may & may_be_minus_infinite ? static_cast<float>(-infinity) : static_cast<float>(nan);
        }
        const double share = std::uniform_real_distribution<double>(-1, 1)(random_);
        const auto moved = static_cast<float>(x.value + share * x.error);
        return x.error > 0 && std::isfinite(x.value) && std::abs(moved - x.value) <= x.error
                   ? moved
                   : static_cast<float>(x.value);
    }
    std::uint64_t next() { return random_(); }

private:
    std::mt19937_64 random_;
    std::normal_distribution<double> normal_;
};

float in_single(UnaryOp op, float x) {
    float out = 0;
    scalar_function(op).fill(&out, &x, 1);
    return out;
}

TEST(Bounded, unary_operations_stay_inside_of_their_bounds) {
    Draw draw(1);
    for (int trial = 0; trial < 400000; ++trial) {
        const auto op = static_cast<UnaryOp>(draw.next() % scalar_functions().size());
        const Bounded a = draw.bounded();
        const float x = draw.inside(a), made = in_single(op, x);
        const Bounded bound = apply(op, a, single);
        ASSERT_TRUE(holds(bound, made)) << name(op) << " of " << x << " in " << a.value << " ± " << a.error << " is " << made
                                        << ", bound " << bound.value << " ± " << bound.error << ", " << int{bound.may};
    }
}

TEST(Bounded, binary_operations_stay_inside_of_their_bounds) {
    constexpr BinaryOp ops[] = {BinaryOp::add, BinaryOp::sub,         BinaryOp::mul,       BinaryOp::div,
                                BinaryOp::pow, BinaryOp::min,         BinaryOp::max,       BinaryOp::lt,
                                BinaryOp::le,  BinaryOp::gt,          BinaryOp::ge,        BinaryOp::eq,
                                BinaryOp::ne,  BinaryOp::logical_and, BinaryOp::logical_or};
    Draw draw(2);
    for (int trial = 0; trial < 400000; ++trial) {
        const BinaryOp op = ops[draw.next() % std::size(ops)];
        const Bounded a = draw.bounded(), b = draw.bounded();
        const float x = draw.inside(a), y = draw.inside(b);
        const float made = op == BinaryOp::add   ? x + y
                           : op == BinaryOp::sub ? x - y
                           : op == BinaryOp::mul ? x * y
                           : op == BinaryOp::div ? x / y
                           : op == BinaryOp::pow ? real_power(x, y)
                                                 : static_cast<float>(apply(op, double{x}, double{y}));
        const Bounded bound = apply(op, a, b, single);
        ASSERT_TRUE(holds(bound, made)) << x << " " << name(op) << " " << y << " in " << a.value << " ± " << a.error
                                        << ", " << b.value << " ± " << b.error << " is " << made << ", bound "
                                        << bound.value << " ± " << bound.error << ", " << int{bound.may};
    }
}

TEST(Bounded, an_exponential_that_vanishes_is_bounded_whatever_its_argument_s_error) {
    for (float x = -90; x > -130; x -= 0.01F) {
        const Bounded bound = apply(UnaryOp::exp, {x, 0.3, 0}, single);
        for (const float near : {x - 0.3F, x - 0.1F, x, x + 0.1F, x + 0.29F}) {
            ASSERT_TRUE(holds(bound, std::exp(near))) << near;
            ASSERT_TRUE(holds(bound, std::exp(double{near}))) << near;
        }
        ASSERT_TRUE(holds(bound, 0) || x > -105) << x;
    }
    const Bounded masked = apply(UnaryOp::exp, {-1e30, 1e23, 0}, single);
    EXPECT_EQ(masked.value, 0);
    EXPECT_LT(masked.error, 1e-300);
    EXPECT_LT(apply(BinaryOp::pow, {2, 0, 0}, {-1e30, 1e23, 0}, single).error, 1e-300);
    // Where the error reaches up to numbers that are held there is no such bound.
    EXPECT_TRUE(is_unbounded(apply(UnaryOp::exp, {-1e30, 2e30, 0}, single)));
}

TEST(Bounded, what_divides_by_an_exponential_beyond_all_numbers_is_bounded) {
    for (const double x : {90.0, 800.0, 1e7, 1e10, 1e38}) {
        const Bounded sum = apply(BinaryOp::add, {1, 0, 0}, apply(UnaryOp::exp, {x, 0, 0}, single), single);
        const Bounded quotient = apply(BinaryOp::div, {1, 0, 0}, sum, single);
        EXPECT_TRUE(holds(sum, infinity)) << x;
        ASSERT_FALSE(is_unbounded(quotient)) << x;
        EXPECT_TRUE(holds(quotient, 0)) << x;
        EXPECT_LT(quotient.error, 1e-37) << x;
        EXPECT_EQ(quotient.may, 0) << x;
    }
    // One that may be any number stays without a bound.
    EXPECT_TRUE(is_unbounded(apply(UnaryOp::exp, {800, 790, 0}, single)));
}

TEST(Bounded, a_weight_of_0_may_be_left_out_whatever_divides_it) {
    EXPECT_TRUE(is_unbounded(apply(BinaryOp::div, {0, 0, 0}, {0, 0, 0}, single)));
    EXPECT_TRUE(is_unbounded(apply(BinaryOp::div, {0, 0, 0}, {std::nan(""), 0, 0}, single)));
    EXPECT_EQ(apply(BinaryOp::div, {0, 0, 0}, {2, 0, 0}, single).value, 0);
    EXPECT_FALSE(is_unbounded(apply(BinaryOp::div, {1, 0, 0}, {0, 0, 0}, single)));
    EXPECT_FALSE(is_unbounded(apply(BinaryOp::div, {1, 0, 0}, {std::nan(""), 0, 0}, single)));
}

TEST(Bounded, functions_of_infinities_are_rounded_where_their_limits_are) {
    EXPECT_TRUE(holds(apply(UnaryOp::atan, {infinity, 0, 0}, single), static_cast<float>(std::atan(infinity))));
    EXPECT_TRUE(holds(apply(UnaryOp::atan, {1e30, 0, may_be_infinite}, single), static_cast<float>(std::atan(infinity))));
    EXPECT_EQ(apply(UnaryOp::tanh, {infinity, 0, 0}, single), (Bounded{1, 0, 0}));
}

TEST(Bounded, a_condition_within_its_error_takes_both_sides) {
    const Bounded condition = apply(BinaryOp::lt, {1, 0.1, 0}, {1.05, 0, 0}, single);
    EXPECT_EQ(condition.error, 1);
    const Bounded either = select(condition, {2, 0, 0}, {5, 0.5, 0});
    EXPECT_TRUE(holds(either, 2));
    EXPECT_TRUE(holds(either, 5.5));
    // One that is certain lets the other side's NaN not count.
    const Bounded sure = apply(BinaryOp::lt, {1, 0.01, 0}, {1.05, 0, 0}, single);
    EXPECT_EQ(select(sure, {2, 0, 0}, {nan, 0, 0}), (Bounded{2, 0, 0}));
}

TEST(Bounded, a_cast_is_off_by_one_rounding_and_by_two_where_the_value_may_round_either_way) {
    EXPECT_EQ(cast(DType::f16, {1.0001, 1e-6, 0}), (Bounded{1, 0x1p-11, 0}));
    // The factor 3/7 of 3/7 · 5/7 may be taken out of the cast.
    const double u = 5.0 / 7, v = 3.0 / 7;
    EXPECT_TRUE(holds(cast(DType::f16, {u * v, 1e-16, 0}), v * round_to(DType::f16, u)));
    const Bounded tie = cast(DType::f16, {1 + 0x1p-11, 1e-6, 0});
    EXPECT_TRUE(holds(tie, 1));
    EXPECT_TRUE(holds(tie, 1 + 0x1p-10));
    EXPECT_EQ(cast(DType::f16, {1e6, 0, 0}).value, infinity);
    EXPECT_TRUE(std::isnan(cast(DType::e4m3, {1e6, 0, 0}).value));
}

TEST(Bounded, a_cast_of_what_may_be_beyond_the_type_holds_all_of_its_numbers) {
    for (const double end : {-1e31, 1e31}) {
        const Bounded one_sided = cast(DType::e4m3, {end / 2, std::abs(end / 2), 0});
        EXPECT_TRUE(holds(one_sided, 0)) << "where the value itself is beyond, too";
        const Bounded both = cast(DType::e4m3, {std::copysign(0.94, end), 1e31, 0});
        for (const double x : {-448.0, -1.0, 0.0, 1.0, 448.0}) EXPECT_TRUE(holds(both, x)) << x;
    }
    const Bounded upwards = cast(DType::f16, {60000, 10000, 0});
    EXPECT_TRUE(holds(upwards, 65504));
    EXPECT_TRUE(holds(upwards, infinity));
    EXPECT_FALSE(holds(upwards, 40000));
}

BoundedRow row_of(const std::vector<double>& value) { return {value.data(), nullptr, nullptr}; }

TEST(Bounded, a_sum_holds_in_every_order) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (int trial = 0; trial < 2000; ++trial) {
        std::vector<double> terms(1 + random() % 40);
        for (double& x : terms) x = static_cast<float>(normal(random) * (random() % 4 == 0 ? 1e6 : 1));
        BoundedReducer reducer(ReduceOp::sum, static_cast<std::int64_t>(terms.size()),
                               static_cast<std::int64_t>(terms.size()), false, single);
        reducer.add(row_of(terms), static_cast<std::int64_t>(terms.size()));
        const Bounded bound = reducer.result();
        std::shuffle(terms.begin(), terms.end(), random);
        float sum = 0;
        for (const double x : terms) sum += static_cast<float>(x);
        ASSERT_TRUE(holds(bound, sum)) << sum << " is not in " << bound.value << " ± " << bound.error;
    }
}

TEST(Bounded, a_factor_that_was_rounded_is_in_the_bound_of_a_sum) {
    const std::vector<double> terms = {0.3, -0.2, 0.7};
    const double unit = epsilon(DType::bf16) / 2;
    BoundedReducer plain(ReduceOp::sum, 3, 3, false, single), rounded(ReduceOp::sum, 3, 3, false, single, unit);
    plain.add(row_of(terms), 3), rounded.add(row_of(terms), 3);
    const double off = unit * (0.3 + 0.2 + 0.7);
    EXPECT_FALSE(holds(plain.result(), 0.8 + off));
    EXPECT_TRUE(holds(rounded.result(), 0.8 + off));
    EXPECT_FALSE(holds(rounded.result(), 0.8 + 1.1 * off));
}

TEST(Bounded, sums_of_whole_numbers_are_exact_and_large_ones_may_overflow) {
    const std::vector<double> whole = {1, 2, -3, 5}, large = {3e38, 3e38, -3e38};
    BoundedReducer exact(ReduceOp::sum, 4, 4, true, single);
    exact.add(row_of(whole), 4);
    EXPECT_EQ(exact.result(), (Bounded{5, 0, 0}));
    BoundedReducer overflowing(ReduceOp::sum, 3, 3, false, single);
    overflowing.add(row_of(large), 3);
    EXPECT_TRUE(overflowing.result().may & may_be_infinite);
    EXPECT_FALSE(overflowing.result().may & may_be_minus_infinite);
}

TEST(Bounded, what_is_not_finite_stays_so_but_which_of_them_is_open) {
    const std::vector<double> terms = {1, infinity, 2}, invalid = {1, nan, 2};
    for (const ReduceOp op : {ReduceOp::prod, ReduceOp::max, ReduceOp::min})
        for (const auto& row : {terms, invalid}) {
            BoundedReducer reducer(op, 3, 3, false, single);
            reducer.add(row_of(row), 3);
            const Bounded bound = reducer.result();
            // An extremum picks its infinity, or passes it by, in every order.
            const bool picks = row[1] == infinity && (op == ReduceOp::max || op == ReduceOp::min);
            EXPECT_EQ(bound.may, picks ? 0 : may_be_any) << static_cast<int>(op);
            EXPECT_EQ(bound.error, 0);
            EXPECT_EQ(holds(bound, 1), op == ReduceOp::min && picks) << static_cast<int>(op);
        }
}

TEST(Bounded, a_maximum_is_uncertain_by_what_could_win) {
    // The least value has a large error, but cannot win.
    const std::vector<double> value = {-1e9, 1, 2}, error = {60, 0.25, 0.5};
    BoundedReducer reducer(ReduceOp::max, 3, 3, false, single);
    reducer.add({value.data(), error.data(), nullptr}, 3);
    EXPECT_NEAR(reducer.result().error, 0.5, 1e-12);
    EXPECT_EQ(reducer.result().value, 2);
}

/// exp(1000)·exp(-1000) is 1, exp(1000)/exp(800) is a number, and the definition's own arithmetic has lost both.
TEST(Bounded, WhatOverflowsTheReferenceIsNotKnownWhenItIsMadeSmall) {
    const Rounding r = rounding_of(DType::f64);
    const auto exponential = [&](double x) { return apply(UnaryOp::exp, {x, 0, 0}, r); };
    const Bounded large = exponential(1000), half{0.5, 0, 0}, two{2, 0, 0};
    EXPECT_TRUE(is_unbounded(apply(BinaryOp::mul, large, exponential(-1000), r)));
    EXPECT_TRUE(is_unbounded(apply(BinaryOp::mul, exponential(-900), large, r)));
    EXPECT_TRUE(is_unbounded(apply(BinaryOp::div, large, exponential(800), r)));
    EXPECT_TRUE(is_unbounded(apply(UnaryOp::log, large, r)));
    EXPECT_TRUE(is_unbounded(apply(UnaryOp::sqrt, large, r)));
    EXPECT_TRUE(is_unbounded(apply(BinaryOp::pow, large, half, r)));
    EXPECT_TRUE(is_unbounded(apply(BinaryOp::pow, large, {-0.01, 0, 0}, r)));
    // What is large again, or next to nothing, is known as such.
    EXPECT_TRUE(holds(apply(BinaryOp::mul, large, two, r), infinity));
    EXPECT_FALSE(holds(apply(BinaryOp::mul, large, two, r), 1));
    EXPECT_TRUE(holds(apply(BinaryOp::div, two, large, r), 0));
    EXPECT_FALSE(holds(apply(BinaryOp::div, two, large, r), 1e-200));
    EXPECT_FALSE(holds(apply(BinaryOp::mul, large, {0, 0, 0}, r), 1));
    EXPECT_FALSE(is_unbounded(apply(UnaryOp::tanh, large, r)));
}

}  // namespace
}  // namespace napkin::test_bounded
