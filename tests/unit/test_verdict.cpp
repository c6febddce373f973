// Each value is judged by itself: one that overflows where it may does not hide another that is wrong.
#include "check/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "syntax/parse.hpp"

namespace napkin::test_verdict {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The outputs' bounds of a diagram that is evaluated as it stands.
struct Evaluated {
    Diagram diagram;
    Extents extents;
    Values values;
    BoundedValues bounds;

    Evaluated(const std::string& text, const std::vector<std::vector<double>>& inputs) {
        auto parsed = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
        EXPECT_TRUE(parsed.ok()) << render(parsed.errors());
        diagram = std::move(parsed).value();
        extents = bind_sizes(diagram).value();
        values.resize(diagram.arrays.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) values[diagram.inputs[i]] = inputs[i];
        bounds = evaluate_bounded(diagram, extents, values, plain_execution(diagram, extents));
    }
    [[nodiscard]] ArrayVerdict judge(const std::vector<double>& made, std::size_t output = 0) const {
        const ArrayId id = diagram.outputs[output];
        return napkin::judge(diagram, id, extents, bounds, made);
    }
};

TEST(Verdict, an_overflowing_row_does_not_hide_a_wrong_one) {
    const Evaluated e("f(X[a, t]) -> Y[a]\n    Y[a] = sum(t) exp(X[a, t])\nsizes a = 2, t = 2\n", {{90, 90, 0, 0}});
    EXPECT_EQ(e.judge({infinity, 2}).judgement, Judgement::good);
    const ArrayVerdict wrong = e.judge({infinity, 5.4});
    EXPECT_EQ(wrong.judgement, Judgement::bad);
    EXPECT_EQ(wrong.place, std::vector<std::int64_t>{1});
    EXPECT_EQ(wrong.beyond, 1);
    EXPECT_TRUE(describe(wrong).starts_with("Y[1] is 5.4, where the definition gives 2 ± ")) << describe(wrong);
    EXPECT_EQ(e.judge({1, 2}).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({nan, 2}).judgement, Judgement::bad);
}

TEST(Verdict, what_is_not_a_number_stays_so) {
    const Evaluated e("f(X[a]) -> Y[a]\n    Y[a] = log(X[a])\nsizes a = 3\n", {{-1, 0, 1}});
    EXPECT_EQ(e.judge({nan, -infinity, 0}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({0, -infinity, 0}).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({nan, -1e30, 0}).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({nan, -infinity, nan}).judgement, Judgement::bad);
}

TEST(Verdict, whole_numbers_are_exact) {
    const Evaluated e("f(X[a, t]) -> Y[a]\n    Y[a] = sum(t) X[a, t] * X[a, t] + t\nsizes a = 1, t = 3\n", {{1, 2, 4}});
    EXPECT_EQ(e.judge({24}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({24.000002}).judgement, Judgement::bad);
}

TEST(Verdict, an_infinity_to_a_power_and_a_division_by_zero_are_what_they_are) {
    const Evaluated e(
        "f(X[a]) -> Y[a], Z[a]\n    L[a] = log(X[a])\n    Y[a] = L[a]^0.5\n    Z[a] = 1 / L[a]\nsizes a = 2\n", {{0, 1}});
    EXPECT_EQ(e.judge({nan, 0}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({infinity, 0}).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({0, infinity}, 1).judgement, Judgement::good);
    EXPECT_EQ(e.judge({0, 1}, 1).judgement, Judgement::bad);
}

TEST(Verdict, a_nan_of_the_definition_is_open_where_an_input_is_not_finite) {
    const std::string text = "f(X[a]) -> Y\n    M = max(a) X[a]\n    Y = min(a) exp(X[a] - M)\nsizes a = 2\n";
    EXPECT_EQ(Evaluated(text, {{infinity, 1}}).judge({nan}).judgement, Judgement::good);
    EXPECT_EQ(Evaluated(text, {{infinity, 1}}).judge({0}).judgement, Judgement::unbounded);
    EXPECT_EQ(Evaluated(text, {{2, 1}}).judge({0}).judgement, Judgement::bad);
}

TEST(Verdict, values_without_a_bound_are_not_called_good) {
    // 0.1 + 0.2 - 0.3 is nothing but rounding, and what divides by it may be anything.
    const Evaluated e("f(X[a], Y[a], Z[a]) -> R[a]\n    R[a] = 1 / (X[a] + Y[a] - Z[a])\nsizes a = 1\n",
                      {{0.1F}, {0.2F}, {0.3F}});
    const ArrayVerdict v = e.judge({7});
    EXPECT_EQ(v.judgement, Judgement::unbounded);
    EXPECT_EQ(v.unbounded, 1);
}

TEST(Verdict, a_nan_of_rounding_is_not_called_good) {
    // Contracted into a multiply-add, the difference of equal products is what one of them was rounded by, and its root
    // may be NaN.
    const Evaluated e(
        "f(A[c], B[c], C[c], D[c]) -> Z[c]\n    Z[c] = sqrt(A[c] * B[c] - C[c] * D[c]) * 0 + 1\nsizes c = 2\n",
        {{0.1F, 0.3F}, {0.7F, 0.9F}, {0.1F, 0.3F}, {0.7F, 0.9F}});
    EXPECT_EQ(e.judge({1, 1}).judgement, Judgement::good);
    const ArrayVerdict v = e.judge({nan, 1});
    EXPECT_EQ(v.judgement, Judgement::unbounded);
    EXPECT_EQ(v.unbounded, 1);
    EXPECT_EQ(v.lost, 1);
}

TEST(Verdict, what_is_below_the_normal_range_may_be_flushed) {
    const Evaluated e(
        "f(A[c], B[c]) -> Y[c], Z[c], S\n    Y[c] = A[c] + 0\n    Z[c] = A[c] - B[c]\n    S = sum(c) A[c]\nsizes c = "
        "3\n",
        {{1e-40F, 3e-38F, 1e-40F}, {0, 2.5e-38F, 0}});
    EXPECT_EQ(e.judge({0, 3e-38F, 1e-40F}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({0, 0, 1e-40F}).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({0, 0, 0}, 1).judgement, Judgement::good);
    EXPECT_EQ(e.judge({1e-36F, 0, 0}, 1).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({3e-38F}, 2).judgement, Judgement::good);
}

TEST(Verdict, a_conversion_may_flush_what_is_below_the_normal_range_of_its_type) {
    const Evaluated e(
        "f(A[c]: f64, B[c]) -> X[c], Y[c], H[c]: f16\n    T[c]: f32 = A[c] * 1\n    X[c] = A[c] * 1\n"
        "    Y[c] = T[c] * 1e20\n    H[c] = B[c] * 1\nsizes c = 2\n",
        {{1e-39, 3e-38}, {0x1p-20, 0x1p-15}});
    EXPECT_EQ(e.judge({0, 3e-38F}, 0).judgement, Judgement::good);
    EXPECT_EQ(e.judge({1e-39F, 0}, 0).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({0, 3e-18F}, 1).judgement, Judgement::good);
    EXPECT_EQ(e.judge({1e-19F, 0}, 1).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({0x1p-20, 0x1p-15}, 2).judgement, Judgement::good);
    EXPECT_EQ(e.judge({0, 0x1p-15}, 2).judgement, Judgement::bad);
}

TEST(Verdict, integers_made_of_real_numbers_saturate_once_and_wrap) {
    const Evaluated e(
        "f(A[c]) -> R[c]: i32, S[c]: i64\n    R[c] = i32(A[c]) + 1\n    S[c] = i32(A[c] * 2) + 1\nsizes c = 3\n",
        {{1e30, nan, -3.5}});
    const auto judged = [&](std::vector<std::int64_t> made, std::size_t output) {
        return judge(e.diagram, e.diagram.outputs[output], e.extents, e.bounds, Column(std::move(made))).judgement;
    };
    EXPECT_EQ(judged({-2147483648LL, 1, -2}, 0), Judgement::good);
    EXPECT_EQ(judged({2147483647, 1, -2}, 0), Judgement::bad);
    EXPECT_EQ(judged({-2147483648LL, 1, -6}, 1), Judgement::good);
    EXPECT_EQ(judged({2147483648LL, 1, -6}, 1), Judgement::bad);
}

TEST(Verdict, a_weight_far_below_the_smallest_number_weighs_nothing) {
    // A mask of -1e30 is uncertain by 1e23, and so is its exponential's argument: yet that is 0, which even -1e30 does
    // not weigh.
    const std::string text =
        "f(X[a, t]) -> H[a]\n    P[a, t] = softmax(t) X[a, t]\n    H[a] = -(sum(t) P[a, t] * log_softmax(t) X[a, t])\n";
    for (const double mask : {-1e9F, -1e30F}) {
        std::vector<double> rows;
        for (int a = 0; a < 2; ++a)
            for (int t = 0; t < 40; ++t) rows.push_back(t < 2 ? 0 : mask);
        const Evaluated e(text + "sizes a = 2, t = 40\n", {rows});
        EXPECT_EQ(e.judge({std::log(2.0), std::log(2.0)}).judgement, Judgement::good) << mask;
        const ArrayVerdict wrong = e.judge({std::log(2.0), std::log(2.0) + 1e-4});
        EXPECT_EQ(wrong.judgement, Judgement::bad) << mask;
        EXPECT_LT(wrong.bound, 1e-5) << mask;
    }
}

TEST(Verdict, a_constant_is_the_nearest_number_of_the_type) {
    const Evaluated e("f(X[a]) -> Y[a], U[a]\n    Y[a] = sin(X[a] - 1e30)\n    U[a] = sin(X[a] - 1)\nsizes a = 1\n", {{0}});
    EXPECT_EQ(e.judge({std::sin(-1e30)}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({std::sin(-static_cast<double>(1e30F))}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({0.1}, 1).judgement, Judgement::bad);
}

TEST(Verdict, the_output_type_rounds_once) {
    const Evaluated e("f(X[a]: f32) -> Y[a]: e4m3\n    Y[a] = X[a] * 1\nsizes a = 3\n", {{1.1, 500, 17}});
    EXPECT_EQ(e.judge({1.125, nan, 16}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({1, nan, 16}).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({1.125, 448, 16}).judgement, Judgement::bad);
}

// Where the bound reaches past the range of e4m3 on both sides, any number may stand; past it on one side, NaN alone.
TEST(Verdict, a_bound_past_the_range_on_both_sides_holds_every_number) {
    const Evaluated e("f(X[a], W[a], Z[a]) -> Y[a]: e4m3\n    Y[a] = Z[a] * exp(X[a] * 3 - W[a])\nsizes a = 2\n",
                      {{-1e9, 0}, {-3e9, 0}, {1, 1e6}});
    EXPECT_EQ(e.judge({1, nan}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({60, nan}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({1, 448}).judgement, Judgement::bad);
}

TEST(Verdict, a_copy_in_a_narrower_type_rounds) {
    const Evaluated e("f(X[a]: f64) -> Y[a]: f64\n    T[a]: f32 = X[a]\n    Y[a] = T[a]\nsizes a = 1\n", {{0.1}});
    EXPECT_EQ(e.judge({static_cast<double>(0.1F)}).judgement, Judgement::good);
    EXPECT_EQ(e.judge({static_cast<double>(0.1F) + 0x1p-27}).judgement, Judgement::bad);
}

TEST(Verdict, an_unstable_form_is_outside_of_the_definition_s_bound) {
    // The variance as the difference of two large numbers is another formula than the mean of the squared distances.
    const Evaluated e("f(X[t]) -> V\n    M = (sum(t) X[t]) / t\n    V = (sum(t) (X[t] - M)^2) / t\nsizes t = 3\n",
                      {{10000, 10001, 10002}});
    float sum = 0, squares = 0;
    for (const float x : {10000.F, 10001.F, 10002.F}) sum += x, squares += x * x;
    EXPECT_EQ(e.judge({squares / 3 - (sum / 3) * (sum / 3)}).judgement, Judgement::bad);
    EXPECT_EQ(e.judge({2.F / 3}).judgement, Judgement::good);
}

}  // namespace
}  // namespace napkin::test_verdict
