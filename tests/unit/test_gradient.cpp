// What the gradients of known texts are made of. Their values are tests/property/test_gradient.cpp's.
#include <gtest/gtest.h>

#include <algorithm>

#include "differentiate/gradient.hpp"
#include "differentiate/log_divisors.hpp"
#include "differentiate/references.hpp"
#include "support/parsed.hpp"
#include "support/ranges.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

constexpr const char* scores =
    "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n"
    "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
    "    P[q, x] = softmax(x) where(x <= q, S[q, x] * k^-0.5, -inf)\n"
    "    O[q, d] = sum(x) P[q, x] * V[x, d]\n";

std::string text_of_gradient(const std::string& text, const GradientOptions& options = {}) {
    return print(canonical(gradient(parsed(text), options).diagram));
}

/// Equations that sum products of two arrays with an axis of their own each.
std::size_t num_products(const Diagram& d) {
    return static_cast<std::size_t>(count_if(d.equations, [&](const Equation& e) {
        const auto arrays = read_arrays(e.body);
        return e.reduce == ReduceOp::sum && arrays.size() == 2 && d.array(e.target).axes.size() >= 2;
    }));
}

TEST(Gradient, ReadsTheRowSumsOfTheResult) {
    const std::string text = text_of_gradient(scores);
    EXPECT_NE(text.find("sum(d) O[q, d] * dO[q, d]"), std::string::npos) << text;
    // No place of a maximum is looked for.
    EXPECT_EQ(text.find("min("), std::string::npos) << text;
}

TEST(Gradient, MultipliesAsOftenAsTheBestByHand) {
    const Diagram d = parsed(scores);
    const Gradient made = gradient(d, {.by = {}, .keep = {*d.find_array("O"), *d.find_array("P_M"), *d.find_array("P_Z")}});
    EXPECT_EQ(made.kept.size(), 3U);
    // With the weights at hand, what they are made of is not asked for.
    const ArrayId weights = *d.find_array("P");
    EXPECT_EQ(gradient(d, {.by = {}, .keep = {*d.find_array("S"), weights}}).kept, std::vector{weights});
    EXPECT_EQ(num_products(made.diagram), 5U) << print(canonical(made.diagram));
}

TEST(Gradient, ComputesWeightsAgainFromOneNumberARow) {
    const Diagram d = with_log_divisors(parsed(scores));
    EXPECT_EQ(print(with_log_divisors(d)), print(d));
    const ArrayId result = *d.find_array("O"), logsumexp = *d.find_array("P_L");
    const Gradient made = gradient(d, {.by = {}, .keep = {result, *d.find_array("P_M"), *d.find_array("P_Z"), logsumexp}});
    EXPECT_EQ(made.kept, (std::vector{result, logsumexp})) << "what L is made of is not asked for";
    const std::string text = print(canonical(made.diagram));
    EXPECT_NE(text.find("P_again[q, x]: f32 = exp(P_X[q, x] - P_L[q])"), std::string::npos) << text;
    EXPECT_EQ(print(canonical(with_outputs(d, {}))), print(canonical(with_outputs(parsed(scores), {}))));
    // An exponential may be written in place.
    const std::string in_place = text_of_gradient(
        "f(X[q, x], N[q], V[x]) -> O[q]\n    Z[q] = sum(x) exp(X[q, x] - N[q])\n"
        "    P[q, x] = exp(X[q, x] - N[q]) / Z[q]\n    O[q] = sum(x) P[q, x] * V[x]\n");
    EXPECT_NE(in_place.find("exp(X[q, x] - P_L[q])"), std::string::npos) << in_place;
    // Other quotients are no weights.
    for (const char* other : {"E[q, x] / 2", "E[q, x] / N[q]", "X[q, x] / Z[q]"}) {
        const Diagram plain = parsed(std::string("f(X[q, x], N[q]) -> Y[q, x]\n    E[q, x] = exp(X[q, x] - N[q])\n"
                                                 "    Z[q] = sum(x) E[q, x]\n    Y[q, x] = ") +
                                     other + "\nsizes q = x = 2\n");
        EXPECT_EQ(print(with_log_divisors(plain)), print(plain)) << other;
    }
}

TEST(Gradient, OfANormalisationHasTwoSumsARow) {
    const std::string text = text_of_gradient("f(X[r, c]) -> Y[r, c]\n    Y[r, c] = standardize(c) X[r, c]\n");
    // The mean and the variance forward, and two back.
    std::size_t sums = 0;
    for (std::size_t at = text.find("sum(c)"); at != std::string::npos; at = text.find("sum(c)", at + 1)) ++sums;
    EXPECT_EQ(sums, 4U) << text;
}

TEST(Gradient, MaximaCancelOnlyWhereAnyNumberWillDo) {
    const auto names = [](const std::string& text) {
        const Diagram d = parsed(text);
        std::vector<std::string> out;
        for (const ArrayId id : cancelling_references(d)) out.push_back(d.array(id).name);
        return out;
    };
    EXPECT_EQ(names(scores), std::vector<std::string>{"P_M"});
    EXPECT_EQ(names("f(X[i]) -> L\n    L = masked_logsumexp(i) X[i]\n"), std::vector<std::string>{"L_M"});
    EXPECT_EQ(names("f(X[i]) -> Y[i]\n    M = max(i) X[i]\n    Y[i] = exp(2 * (X[i] - M)) / exp(X[i] - M)^2\n"),
              std::vector<std::string>{"M"});
    for (const std::string body :
         {"exp(X[i] - M)", "X[i] / M", "where(X[i] == M, X[i] - M + M, M)", "exp(X[i] - M) * M"})
        EXPECT_TRUE(names("f(X[i]) -> Y[i]\n    M = max(i) X[i]\n    Y[i] = " + body + "\n").empty()) << body;
}

TEST(Gradient, OfWindowsSumsOverTheWindow) {
    const std::string text = text_of_gradient(
        "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[i + w] * W[w]\nsizes n = i + w - 1\n");
    EXPECT_NE(text.find("dX[n]: f32 = sum(w) where(n - w >= 0 and n - w < size(i), dY[n - w] * W[w], 0)"), std::string::npos)
        << text;
}

TEST(Gradient, OfPackedHeadsReadsOneElement) {
    const std::string text = text_of_gradient(
        "f(X[t, c]) -> Y[t, h, k]\n    Y[t, h, k] = X[t, h * 64 + k]\nsizes k = 64, c = 64 * h\n");
    EXPECT_EQ(text.find("sum("), std::string::npos) << text;
    EXPECT_NE(text.find("where(size(k) <= 64,"), std::string::npos) << text;
}

TEST(Gradient, IsADiagramOfTheLanguage) {
    const std::string called = std::string(scores) +
                               "g(Q[q, k], K[x, k], V[x, d], dO[q, d]) -> A[q, k], B[x, k], C[x, d]\n"
                               "    A, B, C = grad(f)(Q, K, V, dO)\n";
    const Diagram g = parsed(called);
    EXPECT_EQ(g.outputs.size(), 3U);
    EXPECT_EQ(g.equations.size(), gradient(parsed(scores)).diagram.equations.size());
    const Diagram one = parsed("g(S[q, x], dP[q, x]) -> D[q, x]\n    D[q, x] = grad(softmax)(x)(S[q, x], dP[q, x])\n");
    EXPECT_EQ(one.outputs.size(), 1U);
    const Diagram scalar = parsed("g(X[i], dY[i]) -> D[i]\n    D[i] = grad(silu)(X[i], dY[i])\n");
    EXPECT_EQ(scalar.equations.size(), 1U);
    const Diagram chosen = parsed("g(X[i], G[i], B[i], dY[i]) -> D[i]\n    D = grad(layernorm, G)(X, G, B, dY)\n");
    EXPECT_EQ(chosen.outputs.size(), 1U);
}

TEST(Gradient, KeepsSumsOfNarrowNumbersPrecise) {
    const Diagram g = parsed(std::string(scores) +
                             "g(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16, dO[q, d]: bf16) -> A[q, k]: bf16, B[x, "
                             "k]: bf16, C[x, d]: bf16\n"
                             "    A, B, C = grad(f)(Q, K, V, dO)\n");
    for (const Equation& e : g.equations) {
        const Array& array = g.array(e.target);
        if (array.axes.size() == 1) {
            EXPECT_EQ(array.type, DType::f32) << array.name;
        }
    }
}

}  // namespace
}  // namespace napkin
