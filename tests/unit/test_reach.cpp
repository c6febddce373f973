// Products whose factors meet in another order than the definition's stay inside of its bounds, and nothing else comes
// in with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "check/reference.hpp"
#include "check/verdict.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_reach {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A diagram's last output at given inputs, with its bounds as it stands.
class Evaluated {
public:
    Evaluated(const std::string& text, const std::vector<std::vector<double>>& inputs)
        : diagram_(parse_diagram(std::make_shared<const Source>(Source{"<test>", text})).value()),
          extents_(bind_sizes(diagram_).value()) {
        Values values(diagram_.arrays.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) values[diagram_.inputs[i]] = inputs[i];
        bounds_ = evaluate_bounded(diagram_, extents_, values, plain_execution(diagram_, extents_));
    }
    [[nodiscard]] Judgement judged(const std::vector<double>& made) const {
        return judge(diagram_, diagram_.outputs.back(), extents_, bounds_, made).judgement;
    }
    [[nodiscard]] Bounded bound(std::size_t i) const { return bounds_.at(diagram_.outputs.back(), i); }

private:
    Diagram diagram_;
    Extents extents_;
    BoundedValues bounds_;
};

const std::string scaled_linear =
    "f(X[c], s, W[c, n]) -> Y[n]\n    N[c] = X[c] * s\n    Y[n] = sum(c) N[c] * W[c, n]\n";

TEST(Reach, a_factor_that_leaves_a_sum_lets_only_what_it_tames_overflow) {
    const Evaluated e(scaled_linear + "sizes c = 2, n = 2\n", {{1e37F, 1}, {1e-37F}, {1e37F, 2, 1e37F, 3}});
    // X·W overflows in the first column, where s comes last; in the second nothing is large enough.
    const double first = 1e37, second = 2;
    EXPECT_EQ(e.judged({first, second}), Judgement::good);
    EXPECT_EQ(e.judged({infinity, second}), Judgement::unbounded);
    EXPECT_EQ(e.judged({nan, second}), Judgement::unbounded);
    EXPECT_EQ(e.judged({0, second}), Judgement::bad);
    EXPECT_EQ(e.judged({first * 1.001, second}), Judgement::bad);
    EXPECT_EQ(e.judged({first, infinity}), Judgement::bad);
    EXPECT_EQ(e.judged({first, nan}), Judgement::bad);
    EXPECT_EQ(e.judged({first, second * 1.001}), Judgement::bad);
}

TEST(Reach, a_product_over_a_difference_may_be_taken_of_each_term) {
    const Evaluated e(
        "f(X[a, t], M[a], W[t]) -> Y[a]\n    N[a, t] = X[a, t] - M[a]\n    Y[a] = sum(t) N[a, t] * W[t]\nsizes a = 2, "
        "t = 1\n",
        {{1e38F, 2}, {1e38F, 1}, {10}});
    EXPECT_EQ(e.judged({0, 10}), Judgement::good);
    EXPECT_EQ(e.judged({nan, 10}), Judgement::unbounded);
    EXPECT_EQ(e.judged({0, nan}), Judgement::bad);
}

TEST(Reach, a_partial_product_that_underflows_is_lost) {
    const Evaluated e("f(X[a], Y[a], Z[a]) -> P[a]\n    P[a] = X[a] * Y[a] * Z[a]\nsizes a = 3\n",
                      {{1e30F, 1e-30F, 1e30F}, {1e-30F, 1, 1}, {1e-20F, 1, 1e-30F}});
    EXPECT_EQ(e.judged({1e-20F, 1e-30F, 1}), Judgement::good);
    // Y·Z is nothing in single precision, and all that is multiplied with it: at most the smallest normal number times
    // X, twice.
    EXPECT_EQ(e.judged({0, 1e-30F, 1}), Judgement::good);
    EXPECT_EQ(e.judged({1e-7, 1e-30F, 1}), Judgement::bad);
    EXPECT_EQ(e.judged({0, 0, 1}), Judgement::bad);
    EXPECT_EQ(e.judged({0, 1e-30F, 1.001}), Judgement::bad);
}

TEST(Reach, a_product_of_large_numbers_without_a_small_partial_one_loses_nothing) {
    const Evaluated e("f(X[a], Y[a], Z[a]) -> P[a]\n    P[a] = X[a] * Y[a] * Z[a]\nsizes a = 2\n",
                      {{1e37F, 0}, {1e-37F, 1e37F}, {0.0625F, 1e-37F}});
    // 1e-37 / 16 is below the normal range; nothing is smaller than a factor that is exactly 0.
    EXPECT_EQ(e.judged({0, 0}), Judgement::good);
    EXPECT_EQ(e.judged({0.0625, 1e-30}), Judgement::bad);
    const Evaluated normal("f(X[a], Y[a], Z[a]) -> P[a]\n    P[a] = X[a] * Y[a] * Z[a]\nsizes a = 1\n",
                           {{1e37F}, {1e-37F}, {0.25F}});
    EXPECT_EQ(normal.judged({0}), Judgement::bad);
    EXPECT_EQ(normal.judged({0.25}), Judgement::good);
}

TEST(Reach, a_product_in_one_order_has_the_definition_s_overflow_alone) {
    // Squares are not negative, so that their sum is no NaN, whatever its order.
    const Evaluated squares("f(X[c]) -> Y\n    Y = sum(c) X[c] * X[c]\nsizes c = 2\n", {{1e20F, 1}});
    EXPECT_EQ(squares.judged({infinity}), Judgement::good);
    EXPECT_EQ(squares.judged({nan}), Judgement::bad);
    EXPECT_EQ(squares.judged({1e38}), Judgement::bad);
}

TEST(Reach, what_an_exponential_or_a_reduction_gives_is_one_factor) {
    // Scores of 90 would overflow as exponentials of their own; the definition subtracts their maximum first, and so
    // must what runs.
    const Evaluated e("f(X[t], V[t]) -> Y\n    P[t] = softmax(t) X[t]\n    Y = sum(t) P[t] * V[t]\nsizes t = 2\n",
                      {{90, 90}, {1, 3}});
    EXPECT_EQ(e.judged({2}), Judgement::good);
    EXPECT_EQ(e.judged({infinity}), Judgement::bad);
    EXPECT_EQ(e.judged({nan}), Judgement::bad);
}

TEST(Reach, which_infinity_a_sum_is_stays_open_where_it_has_several_orders) {
    const std::string products = "    Y[q] = sum(k) X[q, k] * K[k]\nsizes q = 2, k = 2\n";
    const std::vector<double> X = {1, infinity, 1, -1}, K = {1, -1};
    // A product of inputs has one order: what follows may rely on its infinity.
    const Evaluated plain("f(X[q, k], K[k]) -> Y[q]\n" + products, {X, K});
    EXPECT_EQ(plain.judged({-infinity, 2}), Judgement::good);
    EXPECT_EQ(plain.judged({nan, 2}), Judgement::bad);
    EXPECT_EQ(plain.judged({infinity, 2}), Judgement::bad);
    const Evaluated scaled(
        "f(X[q, k], K[k]) -> Y[q]\n    Y[q] = sum(k) X[q, k] * K[k] * size(k)^-0.5\nsizes q = 2, k = 2\n", {X, K});
    EXPECT_EQ(scaled.judged({nan, std::sqrt(2.0)}), Judgement::bad);
    // An infinite factor that leaves the sum meets what is left of it.
    const Evaluated leaving("f(s, K[k]) -> Y\n    Y = sum(k) -log(s) * K[k]\nsizes k = 2\n", {{0}, {1, -2}});
    EXPECT_EQ(leaving.judged({-infinity}), Judgement::good);
    EXPECT_EQ(leaving.judged({nan}), Judgement::good);
    EXPECT_EQ(leaving.judged({1}), Judgement::bad);
    const std::string rows = "f(Z[q, k, t], K[k]) -> Y[q]\n    X[q, k] = sum(t) Z[q, k, t]\n" + products;
    const Evaluated nested(rows.substr(0, rows.find("sizes")) + "sizes q = 2, k = 2, t = 1\n", {X, K});
    EXPECT_EQ(nested.judged({-infinity, 2}), Judgement::good);
    EXPECT_EQ(nested.judged({nan, 2}), Judgement::good);
    EXPECT_EQ(nested.judged({1, 2}), Judgement::bad);
    EXPECT_EQ(nested.judged({-infinity, nan}), Judgement::bad);
}

TEST(Reach, the_terms_of_what_is_summed_may_be_summed_apart) {
    const Evaluated e("f(X[k], z) -> Y\n    Y = sum(k) X[k] - z\nsizes k = 4\n", {{1e38, 1e38, 1e38, 1e38}, {0.9e38}});
    EXPECT_EQ(e.judged({0.4e38}), Judgement::good);
    EXPECT_EQ(e.judged({infinity}), Judgement::unbounded);
    const Evaluated small("f(X[k], z) -> Y\n    Y = sum(k) X[k] - z\nsizes k = 4\n", {{1e37, 1e37, 1e37, 1e37}, {0.9e37}});
    EXPECT_EQ(small.judged({infinity}), Judgement::bad);
}

TEST(Reach, a_division_may_be_a_product_with_a_reciprocal) {
    const Evaluated e("f(X[a], Y[a]) -> Q[a]\n    Q[a] = X[a] / Y[a]\nsizes a = 2\n", {{1e-30F, 1}, {1e-39F, 0.5}});
    // The divisor is below the normal range, and may count as 0.
    EXPECT_EQ(e.judged({1e-30F / double{1e-39F}, 2}), Judgement::unbounded);
    EXPECT_EQ(e.judged({infinity, 2}), Judgement::unbounded);
    EXPECT_EQ(e.judged({1e-30F / double{1e-39F}, infinity}), Judgement::bad);
}

TEST(Reach, every_order_of_the_factors_stays_inside) {
    std::mt19937_64 random(5);
    const auto number = [&](int digits) {
        const double power = static_cast<double>(static_cast<int>(random() % (2 * digits + 1)) - digits);
        return double{static_cast<float>((random() % 2 == 0 ? 1 : -1) * std::pow(10, power) *
                                         (1 + 1e-3 * static_cast<double>(random() % 999)))};
    };
    int overflowed = 0, lost = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        const std::size_t terms = 1 + random() % 4;
        const int digits = random() % 4 == 0 ? 2 : 30;
        std::vector<std::vector<double>> inputs(4);
        for (std::size_t i : {0U, 2U, 3U})
            for (std::size_t c = 0; c < terms; ++c) inputs[i].push_back(number(digits));
        inputs[1] = {number(digits)};
        const Evaluated e(
            "f(X[c], s, G[c], W[c]) -> Y\n    N[c] = X[c] * s * G[c] + 1\n    Y = sum(c) N[c] * W[c]\nsizes c = " +
                std::to_string(terms) + "\n",
            inputs);
        // Each product's factors in an order of their own; s in every term, or behind the sum of all.
        const bool behind = random() % 2 == 0;
        float products = 0, rest = 0;
        for (std::size_t c = 0; c < terms; ++c) {
            std::vector<double> factors = {inputs[0][c], inputs[2][c], inputs[3][c]};
            if (!behind) factors.push_back(inputs[1][0]);
            std::shuffle(factors.begin(), factors.end(), random);
            while (factors.size() > 1) {
                const auto product = static_cast<float>(factors[0]) * static_cast<float>(factors[1]);
                factors.erase(factors.begin());
                factors[0] = product;
                std::shuffle(factors.begin(), factors.end(), random);
            }
            products += static_cast<float>(factors[0]);
            rest += static_cast<float>(inputs[3][c]);
        }
        const float made = (behind ? products * static_cast<float>(inputs[1][0]) : products) + rest;
        overflowed += std::isfinite(e.bound(0).value) && std::abs(e.bound(0).value) < 1e30 && !std::isfinite(made) ? 1 : 0;
        lost += std::abs(e.bound(0).value - static_cast<double>(made)) > 1e-3 * std::abs(e.bound(0).value) ? 1 : 0;
        ASSERT_NE(e.judged({made}), Judgement::bad) << "trial " << trial << ": " << made << " for " << e.bound(0).value;
        EXPECT_TRUE(digits > 2 || e.bound(0).may == 0) << "trial " << trial;
    }
    EXPECT_GT(overflowed, 100);
    EXPECT_GT(lost, 100);
}

}  // namespace
}  // namespace napkin::test_reach
