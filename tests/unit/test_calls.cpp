// A call means what its callee's equations mean when they are written out: pairs of texts that must give the same
// values.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_calls {
namespace {

struct Evaluated {
    Diagram diagram;
    Values values;
};

Evaluated evaluated(const std::string& text) {
    auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<text>", text}));
    if (!diagram.ok()) {
        ADD_FAILURE() << text << render(diagram.errors());
        return {};
    }
    const auto extents = bind_sizes(*diagram);
    if (!extents.ok()) {
        ADD_FAILURE() << text << render(extents.errors());
        return {};
    }
    Values values = random_inputs(*diagram, *extents, 7);
    evaluate(*diagram, *extents, values);
    return {*diagram, values};
}

/// Both texts have the same inputs and outputs, in the same order.
void expect_same(const std::string& a, const std::string& b) {
    SCOPED_TRACE(a);
    const Evaluated x = evaluated(a), y = evaluated(b);
    ASSERT_EQ(x.diagram.inputs.size(), y.diagram.inputs.size());
    ASSERT_EQ(x.diagram.outputs.size(), y.diagram.outputs.size());
    for (std::size_t i = 0; i < x.diagram.inputs.size(); ++i) {
        ASSERT_EQ(x.values[x.diagram.inputs[i]], y.values[y.diagram.inputs[i]]);
    }
    for (std::size_t i = 0; i < x.diagram.outputs.size(); ++i) {
        const auto& p = x.values[x.diagram.outputs[i]];
        const auto& q = y.values[y.diagram.outputs[i]];
        ASSERT_EQ(p.size(), q.size());
        ASSERT_FALSE(p.empty());
        for (std::size_t k = 0; k < p.size(); ++k) ASSERT_NEAR(p[k], q[k], 1e-12 * (1 + std::abs(q[k]))) << k;
    }
}

const std::string attend =
    "attend(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n"
    "    S[q, x] = sum(k) Q[q, k] * K[x, k] * size(k)^-0.5\n"
    "    E[q, x] = exp(S[q, x])\n"
    "    Z[q] = sum(x) E[q, x]\n"
    "    O[q, d] = sum(x) E[q, x] / Z[q] * V[x, d]\n";

TEST(Calls, WovenArgumentsAndSharedOnes) {
    const std::string sizes = "sizes b = 2, h = 3, q = 4, x = 5, k = 2, d = 3\n";
    expect_same(attend +
                    "f(Q[b, h, q, k], K[x, b, k], V[x, d]) -> O[b, q, h, d]\n"
                    "    T[b, x, k] = K[x, b, k]\n"
                    "    O[b, q, h, d] = attend(Q[b, h, ..], T[b, ..], V)\n" +
                    sizes,
                "f(Q[b, h, q, k], K[x, b, k], V[x, d]) -> O[b, q, h, d]\n"
                "    E[b, h, q, x] = exp(size(k)^-0.5 * sum(k) Q[b, h, q, k] * K[x, b, k])\n"
                "    Z[b, h, q] = sum(x) E[b, h, q, x]\n"
                "    O[b, q, h, d] = (sum(x) E[b, h, q, x] * V[x, d]) / Z[b, h, q]\n" +
                    sizes);
}

TEST(Calls, AnArrayAgainstItself) {
    const std::string sizes = "sizes n = 4, m = 3\n";
    expect_same(attend + "f(A[n, m]) -> O[n, e]\n    O[n, e] = attend(A, A, A)\n" + sizes,
                "f(A[n, m]) -> O[n, e]\n"
                "    E[n, x] = exp(size(m)^-0.5 * sum(m) A[n, m] * A[x, m])\n"
                "    Z[n] = sum(x) E[n, x]\n"
                "    O[n, e] = (sum(x) E[n, x] * A[x, e]) / Z[n]\n" +
                    sizes);
}

TEST(Calls, PrefixFormBindsItsAxesAndWeavesTheRest) {
    const std::string sizes = "sizes r = 3, c = 5, n = 2\n";
    expect_same("f(X[r, c], W[c, n]) -> Y[r, n]\n    Y[r, n] = sum(c) (standardize(c)(X[r, c] * 2, 0.5)) * W[c, n]\n" + sizes,
                "f(X[r, c], W[c, n]) -> Y[r, n]\n"
                "    A[r, c] = 2 * X[r, c]\n"
                "    M[r] = (sum(c) A[r, c]) / size(c)\n"
                "    V[r] = (sum(c) (A[r, c] - M[r])^2) / size(c)\n"
                "    Y[r, n] = sum(c) (A[r, c] - M[r]) / sqrt(V[r] + 0.5) * W[c, n]\n" +
                    sizes);
}

TEST(Calls, ACalleeOfOneAxisRunsOverSeveral) {
    const std::string sizes = "sizes b = 2, c = 3, n = 4\n";
    expect_same(
        "f(X[b, c, n], G[n, c], B[c, n]) -> Y[b, c, n], Z[b]\n"
        "    Y[b, c, n] = layernorm(c, n)(X[b, c, n], G[n, c], B[c, n], 0.1)\n"
        "    Z[b] = var(n, c) X[b, c, n]\n" +
            sizes,
        "f(X[b, c, n], G[n, c], B[c, n]) -> Y[b, c, n], Z[b]\n"
        "    M[b] = (sum(c, n) X[b, c, n]) / 12\n"
        "    Z[b] = (sum(c, n) (X[b, c, n] - M[b])^2) / 12\n"
        "    Y[b, c, n] = (X[b, c, n] - M[b]) / sqrt(Z[b] + 0.1) * G[n, c] + B[c, n]\n" +
            sizes);
}

TEST(Calls, ShiftedArgumentsAreComposed) {
    const std::string sizes = "sizes n = 12, w = 3, j = 4\n";
    expect_same(
        "conv(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[i + 2*w] * W[w]\n"
        "f(A[n, b], W[w]) -> Y[b, j]\n    Y[b, j] = conv(m, w, j)(A[m + 1, b], W[w])\nsizes m = n - 1, b = 2\n" +
            sizes,
        "f(A[n, b], W[w]) -> Y[b, j]\n    Y[b, j] = sum(w) A[1 + j + 2*w, b] * W[w]\nsizes b = 2\n" + sizes);
}

TEST(Calls, ScalarsMayDependOnWovenAxes) {
    const std::string sizes = "sizes n = 4, v = 6\n";
    expect_same("f(X[n, v], T[n]) -> L[n]\n    L[n] = cross_entropy(v)(X[n, v], floor(abs(T[n])))\n" + sizes,
                "f(X[n, v], T[n]) -> L[n]\n"
                "    L[n] = log(sum(v) exp(X[n, v])) - sum(v) where(v == floor(abs(T[n])), X[n, v], 0)\n" +
                    sizes);
}

TEST(Calls, StringsMeanTheirProducts) {
    const std::string sizes = "sizes b = 2, q = 3, k = 4, x = 5\n";
    expect_same(
        "f(Q[b, q, k], K[b, x, k]) -> S[x, b, q], M[q]\n"
        "    S = einsum(\"bqk,bxk->xbq\", Q, K)\n    M[q] = reduce(\"b q k -> q\", \"mean\", Q) + einsum(\"bkq->\", "
        "Q)\n" +
            sizes,
        "f(Q[b, q, k], K[b, x, k]) -> S[x, b, q], M[q]\n"
        "    S[x, b, q] = sum(k) Q[b, q, k] * K[b, x, k]\n"
        "    M[q] = (sum(b, k) Q[b, q, k]) / (size(b) * size(k)) + sum(b, p, k) Q[b, p, k]\n" +
            sizes);
}

TEST(Calls, ElementwiseCalleesAreExpressions) {
    const std::string sizes = "sizes i = 50\n";
    expect_same("f(X[i]) -> Y[i]\n    Y[i] = softplus(gelu(X[i] + 1) * 2) + mish(X[i]) * clamp(X[i], -1, 0.5)\n" + sizes,
                "f(X[i]) -> Y[i]\n"
                "    G[i] = (X[i] + 1) * (1 + erf((X[i] + 1) / sqrt(2)))\n"
                "    Y[i] = log(1 + exp(G[i])) + X[i] * tanh(log(1 + exp(X[i]))) * max(-1, min(0.5, X[i]))\n" +
                    sizes);
}

TEST(Calls, AConditionAroundACallOrAReductionKeepsItsReadsInside) {
    const std::string keys = "sizes n = 7, k = 3, w = 4\n", sizes = "sizes n = 7, m = 5\n";
    expect_same("f(Q[n, k], K[n, k]) -> S[n, w]\n    S[n, w] = where(n - w >= 0, sum(k) Q[n, k] * K[n - w, k], -1)\n" + keys,
                "f(Q[n, k], K[n, k]) -> S[n, w]\n    P[n, w] = sum(k) Q[n, k] * where(n - w >= 0, K[n - w, k], 0)\n"
                "    S[n, w] = where(n - w >= 0, P[n, w], -1)\n" +
                    keys);
    expect_same("f(X[n, m]) -> Y[n]\n    Y[n] = where(n >= 2, logsumexp(m) X[n - 2, m], 0)\n" + sizes,
                "f(X[n, m]) -> Y[n]\n    L[n] = logsumexp(m) X[n, m]\n    Y[n] = where(n >= 2, L[n - 2], 0)\n" + sizes);
    expect_same("f(X[n, m]) -> Y[n]\n    Y[n] = where(n < 2, 0, l2norm(X[n - 2, ..]))\n" + sizes,
                "f(X[n, m]) -> Y[n]\n    L[n] = l2norm(m) X[n, m]\n    Y[n] = where(n >= 2, L[n - 2], 0)\n" + sizes);
}

/// A condition on another axis, or on one that the reduction binds, keeps no read inside.
TEST(Calls, AConditionStaysWhereItSaysNothingOfTheReads) {
    const std::string sizes = "sizes n = 7, m = 5\n";
    const Diagram masked =
        evaluated(
            "f(Q[n, k], K[m, k]) -> S[n, m]\n    S[n, m] = where(m <= n, sum(k) Q[n, k] * K[m, k], -inf)\n"
            "sizes n = 7, m = 5, k = 3\n")
            .diagram;
    ASSERT_FALSE(masked.equations.empty());
    EXPECT_EQ(to_string(masked, masked.equations[0]), "S_sum[n, m] = sum(k) Q[n, k] * K[m, k]");
    const Diagram turned =
        evaluated("f(X[n, m]) -> Y[n]\n    Y[n] = where(n > 2, sum(m) X[(n + 2) % size(n), m], 0)\n" + sizes).diagram;
    ASSERT_FALSE(turned.equations.empty());
    EXPECT_EQ(to_string(turned, turned.equations[0]), "Y_sum[n] = sum(m) X[(n + 2) % size(n), m]");
    const auto outside = parse_diagram(std::make_shared<const Source>(
        Source{"<text>", "f(X[n, m]) -> Y[n, m]\n    Y[n, m] = where(m >= 1, (softmax(m) X[n, m - 1]), 0)\n" + sizes}));
    ASSERT_TRUE(outside.ok());
    EXPECT_FALSE(bind_sizes(*outside).ok());
}

/// What the conditions around a call depend on, its temporaries depend on as well.
TEST(Calls, AConditionOnAnotherAxisStandsAroundAGuardedCall) {
    const std::string sizes = "sizes k = 3, d = 5, q = 4\n";
    expect_same(
        "f(P[k, d], O[d, k], B[d, q]) -> S[q, d]\n"
        "    S[q, d] = where(B[d, q] > 0, where(d + 1 < size(d), (mean(k) P[k, d + 1] * O[d, k]), 0), 2)\n" +
            sizes,
        "f(P[k, d], O[d, k], B[d, q]) -> S[q, d]\n"
        "    M[d] = mean(k) P[k, (d + 1) % size(d)] * O[d, k]\n"
        "    S[q, d] = where(B[d, q] > 0, where(d + 1 < size(d), M[d], 0), 2)\n" +
            sizes);
}

TEST(Calls, AnOffsetReadsAPartOfADimension) {
    const Evaluated part = evaluated("f(X[a]) -> Y[j]\n    Y[j] = X[j + 0]\nsizes a = 7, j = 3\n");
    ASSERT_FALSE(part.diagram.outputs.empty());
    const auto& x = part.values[part.diagram.inputs[0]];
    const auto& y = part.values[part.diagram.outputs[0]];
    ASSERT_EQ(y.size(), 3);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x[i]);
    const std::string sizes = "sizes a = 7, j = 3, k = 9\n";
    expect_same(
        "f(X[a, j]) -> Y[k]\n    Y[k] = where(k < a, sum(j) X[k + 0, j], 0)\n" + sizes,
        "f(X[a, j]) -> Y[k]\n    S[a] = sum(j) X[a, j]\n    Y[k] = where(k < size(a), S[min(k, size(a) - 1)], 0)\n" + sizes);
}

TEST(Calls, AnAxisIsBoundAnewInsideOfAnExpression) {
    const std::string sizes = "sizes i = 4, j = 6\n";
    expect_same("f(X[i, j]) -> Y[i, j]\n    Y[i, j] = X[i, j] / sum(j) X[i, j]^2\n" + sizes,
                "f(X[i, j]) -> Y[i, j]\n    Z[i] = sum(k) X[i, k]^2\n    Y[i, j] = X[i, j] / Z[i]\n" + sizes);
    expect_same("f(X[i, j]) -> Y[i, j]\n    Y[i, j] = X[i, j] - logsumexp(j) (X[i, j] + j)\n" + sizes,
                "f(X[i, j]) -> Y[i, j]\n    Z[i] = logsumexp(k) (X[i, k] + k)\n    Y[i, j] = X[i, j] - Z[i]\n" + sizes);
    expect_same(
        "f(X[i, j]) -> Y[i, j]\n    Y[i, j] = where(j > argmax(j) X[i, j], X[i, j], max(i, j) X[i, j] * (j + 1))\n" + sizes,
        "f(X[i, j]) -> Y[i, j]\n    A[i] = argmax(k) X[i, k]\n    B = max(h, k) X[h, k] * (k + 1)\n"
        "    Y[i, j] = where(j > A[i], X[i, j], B)\n" +
            sizes);
}

TEST(Calls, OtherSpellings) {
    const std::string sizes = "sizes i = 7\n";
    expect_same(
        "f(X[i], Z[i]) -> Y[i], W[i]\n"
        "    Y[i] = max(X[i], Z[i], 0.25, i / 7) - min(1, X[i], Z[i])\n"
        "    W[i] = X[i] ** 2 ** 2 - -X[i] ** 2 + 2 ** -1\n" +
            sizes,
        "f(X[i], Z[i]) -> Y[i], W[i]\n"
        "    Y[i] = max(max(max(X[i], Z[i]), 0.25), i / 7) - min(min(1, X[i]), Z[i])\n"
        "    W[i] = X[i] ^ (2 ^ 2) + X[i] * X[i] + 0.5\n" +
            sizes);
    expect_same("f(X[i]) -> Y[i]\n    Y[i] = sin(pi * X[i])\n" + sizes,
                "f(X[i]) -> Y[i]\n    Y[i] = sin(3.141592653589793 * X[i])\n" + sizes);
    // What the text calls pi is that.
    expect_same("f(X[i], pi[i]) -> Y[i]\n    Y[i] = X[i] * pi[i]\n" + sizes,
                "f(X[i], P[i]) -> Y[i]\n    Y[i] = X[i] * P[i]\n" + sizes);
    expect_same("f(X[i]) -> Y[i]\n    pi = sum(i) X[i]\n    Y[i] = X[i] - pi\n" + sizes,
                "f(X[i]) -> Y[i]\n    P = sum(i) X[i]\n    Y[i] = X[i] - P\n" + sizes);
}

TEST(Calls, Truth) {
    const std::string sizes = "sizes i = 7, j = 5\n";
    expect_same(
        "f(X[i, j]) -> A[i]: i32, B[j]: i32, C: i32, D[i], E[i, j]\n"
        "    A[i] = any(j) X[i, j] > 0.8\n"
        "    B[j] = all(i) X[i, j] > -1 and X[i, j] < 1.5\n"
        "    C = count(i, j) X[i, j] > 0\n"
        "    D[i] = where(any(j) X[i, j] > 1, 1, 2) + count(j) X[i, j] < 0\n"
        "    E[i, j] = where(isnan(log(X[i, j])), 1, where(isinf(X[i, j] / 0), sign(X[i, j]), 3)) + "
        "isfinite(X[i, j])\n" +
            sizes,
        "f(X[i, j]) -> A[i]: i32, B[j]: i32, C: i32, D[i], E[i, j]\n"
        "    A[i] = max(j) i32(X[i, j] > 0.8)\n"
        "    B[j] = min(i) i32(X[i, j] > -1 and X[i, j] < 1.5)\n"
        "    C = sum(i, j) where(X[i, j] > 0, 1, 0)\n"
        "    D[i] = where((max(j) X[i, j]) > 1, 1, 2) + sum(j) where(X[i, j] < 0, 1, 0)\n"
        "    E[i, j] = where(X[i, j] < 0, 1, 1) + 1\n" +
            sizes);
}

}  // namespace
}  // namespace napkin::test_calls
