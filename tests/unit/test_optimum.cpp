// H* in letters from the language's text: the paper's §4, and what is said about when it holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/pipeline.hpp"
#include "support/in_letters.hpp"

namespace napkin::test_optimum {
namespace {

using testing::Contains;
using testing::ElementsAre;

const Size a = letter("a"), b = letter("b"), c = letter("c"), q = letter("q"), x = letter("x"), d = letter("d"),
           k = letter("k"), h = letter("h"), g = letter("g"), M = letter("M");

CostInLetters cost_of(const std::string& text, const std::map<std::string, std::string>& tied = {}) {
    PipelineOptions options;
    options.until = Pass::parse;
    auto made = run_pipeline(std::make_shared<const Source>(Source{"<text>", text}), options);
    if (!made) throw InternalError(render(made.errors()));
    const Derived derived = derive(made->diagram).value();
    const Kernel& kernel = derived.kernels.back();
    return in_letters(
        with_tied(symbolic_cost(derived, kernel, default_grouped(kernel), Measure::values, HeldTiles::point_by_point),
                  tied_letters(derived.diagram, tied)),
        derived.diagram);
}

const std::string one_head = R"(
attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";
const std::map<std::string, std::string> k_is_d{{"k", "d"}};

TEST(Optimum, Contraction) {
    const OptimumInLetters best = best_of(
        cost_of("f(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\n"));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * a * b * c * letter("M", Rational(-1, 2)) + a * c);
    EXPECT_THAT(best.at, ElementsAre("g_a = M^(1/2)", "g_c = M^(1/2)"));
    const auto terms = best.standard_form();
    ASSERT_EQ(terms.size(), 2U);
    EXPECT_EQ(terms[0].alpha, a * c);
    EXPECT_EQ(terms[0].beta, Rational(0));
    EXPECT_EQ(terms[1].alpha, Size(2) * a * b * c);
    EXPECT_EQ(terms[1].beta, Rational(1, 2));
}

TEST(Optimum, OneHead) {
    const OptimumInLetters best = best_of(cost_of(one_head, k_is_d));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * q * d + Size(4) * x * q * d * d / M);
    EXPECT_THAT(best.at, ElementsAre("g_q = M/(2·d)"));
}

TEST(Optimum, HeadsThatDiffer) {
    // In the loop Q and O are held, after it O alone: it takes the place of its sums.
    const OptimumInLetters best = best_of(cost_of(one_head));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, q * k + q * d + x * q * (k + d) * (k + d) / M);
    EXPECT_THAT(best.at, ElementsAre("g_q = M/(d + k)"));
}

TEST(Optimum, TailsAreFree) {
    // Theorem 1: what is done to a result at its own point needs no second tile.
    const OptimumInLetters best = best_of(
        cost_of("f(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = (sum(b) A[a, b] * B[b, c]) * 0.5\n"));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * a * b * c * letter("M", Rational(-1, 2)) + a * c);
}

TEST(Optimum, SingleValuesAreNoTiles) {
    // The running maximum and the running sum are tiles; the old maximum and the correction are made and used at a
    // point alone.
    const OptimumInLetters best = best_of(cost_of(
        "f(A[a, b], B[b, c]) -> C[a, c]\n    S[a, b, c] = A[a, b] + B[b, c]\n    C[a, c] = logsumexp(b) S[a, b, c]\n"));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * a * b * c * *Size(2).pow(Rational(1, 2)) * letter("M", Rational(-1, 2)) + a * c);
}

TEST(Optimum, SeveralHeads) {
    const OptimumInLetters best = best_of(cost_of(one_head + R"(
heads(Q[h, q, k], K[h, x, k], V[h, x, d]) -> O[h, q, d]
    O[h, q, d] = attention(Q[h, ..], K[h, ..], V[h, ..])
)",
                                                  k_is_d));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * h * q * d + Size(4) * h * x * q * d * d / M);
    EXPECT_THAT(best.at, ElementsAre("g_h = 1", "g_q = M/(2·d)"));
}

TEST(Optimum, GroupedQueries) {
    const OptimumInLetters best = best_of(cost_of(one_head + R"(
grouped(Q[g, q, k], K[x, k], V[x, d]) -> O[g, q, d]
    O[g, q, d] = attention(Q[g, ..], K, V)
)",
                                                  k_is_d));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * g * q * d + Size(4) * g * x * q * d * d / M);
    EXPECT_THAT(best.at, ElementsAre("g_g·g_q = M/(2·d)"));
}

TEST(Optimum, SaysWhenMemoryIsLarge) {
    // Beside the square tile lie k columns of both operands.
    const OptimumInLetters best = best_of(
        cost_of("f(A[a, k, b], B[b, k, c]) -> C[a, c]\n    C[a, c] = sum(k, b) A[a, k, b] * B[b, k, c]\n"));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * a * b * c * k * letter("M", Rational(-1, 2)) + a * c);
    ASSERT_EQ(best.at.size(), 3U);
    EXPECT_THAT(best.at[2], testing::AnyOf("where M ≫ k²", "where M ≫ b²"));
}

TEST(Optimum, WhyNot) {
    const OptimumInLetters best = best_of(
        cost_of("f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[i + w] * W[w]\nsizes n = i + w - 1, i = 1000, w = 8\n"));
    EXPECT_EQ(best.why_not, best.closed ? "" : "H depends on the stream size s_w");
    EXPECT_EQ(best.closed, !best.standard_form().empty());
}

OptimumInLetters best_at(const CostInLetters& cost, const SymbolValues& sizes) {
    return in_letters(optimum_at(cost.cost, sizes), cost.diagram);
}
/// H* at these sizes.
std::optional<double> value_at(const CostInLetters& cost, const SymbolValues& sizes) {
    const Optimum best = optimum_at(cost.cost, sizes);
    return best.value(best.transfers, sizes);
}

TEST(Optimum, GroupsAreAtMostTheirAxes) {
    const CostInLetters cost = cost_of("f(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\n");
    // √M = 1000 is longer than c: c whole, and a as long as fits beside it.
    const auto sizes = values_by_name(cost.diagram, {{"a", 1e6}, {"b", 1e3}, {"c", 100}, {"M", 1e6}});
    const OptimumInLetters best = best_at(cost, sizes);
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_THAT(best.at, Contains("g_c = c, its whole axis"));
    // M ≥ g_a·(c + 1) with a chunk of 1: H* = ac + ab + abc·(c + 1)/M.
    EXPECT_NEAR(*value_at(cost, sizes), 1e8 + 1e9 + 1e6 * 1e3 * 100 * 101 / 1e6, 1);
    // All of it fits: every array once.
    const auto small = values_by_name(cost.diagram, {{"a", 100}, {"b", 50}, {"c", 100}, {"M", 1e6}});
    const Optimum whole = optimum_at(cost.cost, small);
    EXPECT_NEAR(*whole.value(whole.transfers, small), 100 * 50 + 50 * 100 + 100 * 100, 1e-6);
}

TEST(Optimum, GroupsAreAtLeastOne) {
    // g_h = √M/(d + k) is below 1 where M is small.
    const CostInLetters cost = cost_of(R"(
f(Q[h, q, k], K[h, x, k], V[h, x, d], B[q, x]) -> O[h, q, d]
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k] + B[q, x]
    P[h, q, x] = softmax(x) S[h, q, x]
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
)");
    const auto sizes = values_by_name(cost.diagram, {{"h", 64}, {"q", 1e6}, {"x", 1e6}, {"k", 64}, {"d", 64}, {"M", 4096}});
    const OptimumInLetters best = best_at(cost, sizes);
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_THAT(best.at, Contains("g_h = 1"));
}

TEST(Optimum, NoNumberWhereARootHasNone) {
    // Strides longer than their windows make a coefficient negative that stands under a root.
    const CostInLetters cost = cost_of(R"(
f(X[c, m, n], W[o, c, v, w]) -> Y[o, i, j]
    Y[o, i, j] = sum(c, v, w) X[c, 2 * i + v, 2 * j + w] * W[o, c, v, w]
sizes m = 2 * i + v, n = 2 * j + w
)");
    const auto sizes = values_by_name(cost.diagram,
                                      {{"c", 64}, {"o", 64}, {"v", 1}, {"w", 3}, {"i", 1e4}, {"j", 1e4}, {"M", 1e5}});
    const Optimum letters = optimum(cost.cost);
    ASSERT_TRUE(letters.closed);
    EXPECT_FALSE(letters.value(letters.transfers, sizes).has_value());
    const OptimumInLetters best = best_at(cost, sizes);
    EXPECT_FALSE(best.closed);
    EXPECT_EQ(best.why_not, "a coefficient of H is not positive at these sizes");
}

TEST(Optimum, AnAxisMayBeCalledAsSizesAre) {
    // Beside an axis M, memory is M'; group and stream sizes of an axis are not those that another axis spells.
    const CostInLetters cost = cost_of(
        "f(A[M, K], B[K, g_M]) -> C[M, g_M]\n    C[M, g_M] = sum(K) A[M, K] * B[K, g_M]\n");
    const OptimumInLetters best = best_of(cost);
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_THAT(best.at, ElementsAre("g_M' = M'^(1/2)", "g_g_M = M'^(1/2)"));
    EXPECT_EQ(to_string(optimum(cost.cost).transfers, symbol_names(cost.diagram)), "M·g_M + 2·K·M·g_M·M'^(-1/2)");
    const auto sizes = values_by_name(cost.diagram, {{"M", 1e6}, {"K", 1e3}, {"g_M", 1e6}, {"M'", 10000}});
    EXPECT_NEAR(*value_at(cost, sizes), 1e12 + 2e15 / 100, 0.02 * 2e13);

    const OptimumInLetters streamed = best_of(
        cost_of("f(A[a, s_k], B[s_k, c]) -> C[a, c]\n    C[a, c] = sum(s_k) A[a, s_k] * B[s_k, c]\n"));
    ASSERT_TRUE(streamed.closed) << streamed.why_not;
    EXPECT_EQ(streamed.transfers, Size(2) * a * letter("s_k") * c * letter("M", Rational(-1, 2)) + a * c);
}

}  // namespace
}  // namespace napkin::test_optimum
