// What a diagram becomes before its kernels are chosen, how kernels are gathered, and the record of it all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "derive/derive.hpp"
#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "derive/verify.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "run/derivation.hpp"
#include "support/parsed.hpp"

namespace napkin::test_normal_form {
namespace {

Derived derived(const std::string& text) {
    Derived d = derive(parsed(text)).value();
    EXPECT_EQ(verify(d), std::vector<std::string>{});
    return d;
}

/// The largest relative distance of any step's form, cut in twos, from the definition.
double error_of_steps(const Derived& d) {
    const Extents extents = bind_sizes(d.source).value();
    Values want = random_inputs(d.source, extents, 7);
    const Values inputs = want;
    evaluate(d.source, extents, want);
    double worst = 0;
    const PartitionSizes cut{std::vector<std::int64_t>(extents.size(), 2), std::vector<std::int64_t>(extents.size(), 2)};
    for (Replay replay(d);; replay.next()) {
        const Derived form = replay.form();
        EXPECT_EQ(verify(form.diagram_without_kernel_arrays()), std::vector<std::string>{});
        Values have = inputs;
        have.resize(form.diagram.arrays.size());
        evaluate(form, extents, cut, have);
        for (const ArrayId id : d.source.outputs)
            for (std::size_t i = 0; i < want[id].size(); ++i) {
                const double x = want[id][i], y = have[id][i];
                worst = std::max(worst, x == y ? 0 : std::abs(x - y) / std::max(1.0, std::abs(x)));
            }
        if (replay.done()) return worst;
    }
}

bool has_rule(const Derived& d, const std::string& rule) {
    return std::any_of(d.steps.begin(), d.steps.end(), [&](const DerivationStep& s) { return s.rule == rule; });
}

/// One kernel, and every step of its derivation means the definition.
void expect_kernels(const std::string& text, std::size_t kernels) {
    const Derived d = derived(text);
    EXPECT_EQ(d.kernels.size(), kernels) << describe(d);
    EXPECT_LT(error_of_steps(d), 1e-9) << explain(d);
}

TEST(Siblings, StatisticsOfOneInputShareAKernel) {
    expect_kernels(
        "f(X[a, t]) -> S[a], Q[a]\n    S[a] = sum(t) X[a, t]\n    Q[a] = sum(t) X[a, t]^2\nsizes a = 3, t = 5\n", 1);
    expect_kernels(
        "f(X[a, t]) -> A[a], B[a], C[a], D[a], E[a], F[a]\n    A[a] = sum(t) X[a, t]\n    B[a] = sum(t) X[a, t]^2\n"
        "    C[a] = max(t) X[a, t]\n    D[a] = min(t) X[a, t]\n    E[a] = sum(t) abs(X[a, t])\n"
        "    F[a] = sum(t) exp(X[a, t])\nsizes a = 3, t = 5\n",
        1);
}

TEST(Siblings, ProjectionsOfOneInputShareAKernel) {
    expect_kernels(
        "f(X[t, c], A[c, q], B[c, k], C[c, v]) -> Q[t, q], K[t, k], V[t, v]\n    Q[t, q] = sum(c) X[t, c] * A[c, q]\n"
        "    K[t, k] = sum(c) X[t, c] * B[c, k]\n    V[t, v] = sum(c) X[t, c] * C[c, v]\nsizes t = 3, c = 4, q = 2, k "
        "= 3, v = 2\n",
        1);
}

TEST(Siblings, MapsOfOneInputShareAKernel) {
    expect_kernels(
        "f(X[a, t]) -> A[a, t], B[a, t], C[a, t], D[a, t]\n    A[a, t] = X[a, t] + 1\n    B[a, t] = X[a, t] * 2\n"
        "    C[a, t] = exp(X[a, t])\n    D[a, t] = tanh(X[a, t])\nsizes a = 3, t = 5\n",
        1);
}

TEST(Siblings, ThoseThatStreamDifferentAxesStayApartAndSaySo) {
    const Derived d = derived(
        "f(X[a, t]) -> S[a], M[t]\n    S[a] = sum(t) X[a, t]\n    M[t] = max(a) X[a, t]\nsizes a = 3, t = 5\n");
    EXPECT_EQ(d.kernels.size(), 2U);
    ASSERT_FALSE(d.refusals.empty());
    EXPECT_NE(d.refusals.front().what.find("S and M"), std::string::npos) << d.refusals.front().what;
    EXPECT_NE(d.refusals.front().reason.find("one streams t, the other a"), std::string::npos);
}

int num_traversals(const std::string& scores) {
    const Derived d = derived("f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n" + scores +
                              "    M[q] = max(x) S[q, x]\n    O[q, d] = max(x) (S[q, x] - M[q] + V[x, d])\n"
                              "sizes q = 3, x = 5, k = 4, d = 2\n");
    EXPECT_LE(error_of_steps(d), 1e-12);
    int loops = 0;
    for (const Kernel& kernel : d.kernels)
        loops += static_cast<int>(std::count_if(kernel.stages.begin(), kernel.stages.end(),
                                                [](const Stage& stage) { return std::holds_alternative<Loop>(stage); }));
    return loops;
}

// What was computed is rounded as what is as large as it is, whatever is added first; what is read is exact.
TEST(Extrema, PartsOfTheStreamAreAddedFirstWhereTheRunningResultIsOfAComputedOne) {
    EXPECT_EQ(num_traversals("    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"), 1);
    EXPECT_EQ(num_traversals("    S[q, x] = Q[q, 0] * K[x, 0]\n"), 1);
    EXPECT_EQ(num_traversals("    S[q, x] = max(Q[q, 0], K[x, 0])\n"), 2);
    EXPECT_EQ(num_traversals("    S[q, x] = max(k) where(k < 2, Q[q, k], -K[x, k])\n"), 2);
}

TEST(UnifyAxes, ASecondNameOfADimensionIsTheFirst) {
    const std::string text =
        "f(A[a, k], B[t, k], V[t, d]) -> O[a, d]\n    S[a, t] = sum(k) A[a, k] * B[t, k]\n    M[a] = max(j) S[a, j]\n"
        "    E[a, t] = exp(S[a, t] - M[a])\n    Z[a] = sum(j) E[a, j]\n    O[a, d] = sum(t) E[a, t] / Z[a] * V[t, d]\n"
        "sizes a = 3, t = 5, k = 2, d = 2\n";
    const Derived d = derived(text);
    EXPECT_TRUE(has_rule(d, "unify axes"));
    for (const Kernel& k : d.kernels)
        for (const ArrayId id : k.outputs) EXPECT_NE(d.diagram.array(id).name, "S");
    expect_kernels(text, 1);
}

TEST(UnifyAxes, AxesThatAnEquationTellsApartStay) {
    const Derived d = derived(
        "f(X[i, k]) -> G[i]\n    S[i, k] = X[i, k] * 2\n    G[i] = sum(j, k) S[i, k] * S[j, k]\nsizes i = 4, k = 3\n");
    EXPECT_FALSE(has_rule(d, "unify axes"));
}

TEST(MergeEqual, SoftmaxWrittenTwiceKeepsOneMaximumAndOneSum) {
    const std::string text =
        "f(S[q, x], V[x, d], W[x, e]) -> O[q, d], U[q, e]\n    P[q, x] = softmax(x) S[q, x]\n"
        "    R[q, x] = softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n    U[q, e] = sum(x) W[x, e] * R[q, "
        "x]\n"
        "sizes q = 3, x = 5, d = 2, e = 2\n";
    const Derived d = derived(text);
    ASSERT_EQ(d.kernels.size(), 1U);
    ASSERT_EQ(d.kernels.front().folds.size(), 1U);
    EXPECT_EQ(d.kernels.front().folds.front().states.size(), 4U) << describe(d);  // m, z, and two outputs
    EXPECT_LT(error_of_steps(d), 1e-9);
}

TEST(MergeEqual, OperandsThatCommuteAreTheSame) {
    const Derived d = derived(
        "f(A[i, k], B[i, k]) -> X[i], Y[i]\n    X[i] = sum(k) A[i, k] * B[i, k]\n    Y[i] = sum(k) B[i, k] * A[i, k]\n"
        "sizes i = 3, k = 4\n");
    EXPECT_TRUE(has_rule(d, "merge"));
    EXPECT_LT(error_of_steps(d), 1e-9);
}

TEST(InlineShifted, AMapThatIsReadAtOtherIndicesIsComputedThere) {
    expect_kernels(
        "f(X[n, c]) -> Y[m, c]\n    A[n, c] = X[n, c] * 2 + 1\n    Y[m, c] = max(p) A[2*m + p, c]\n"
        "sizes n = 8, c = 2, m = 4, p = 2\n",
        1);
}

/// A sum's own kernel adds a bias: readers elsewhere find it done, and are products of arrays.
TEST(InlineShifted, AMapOfASumIsComputedWithTheSum) {
    const Derived form = derived(
        "f(N[t, c], W[h, k, c], B[h, k], Q[h, t, k]) -> S[h, t, x]\n"
        "    K[t, h, k] = (sum(c) N[t, c] * W[h, k, c]) + B[h, k]\n"
        "    S[h, t, x] = sum(k) Q[h, t, k] * K[x, h, k]\n"
        "sizes t = x = 5, c = 3, h = 2, k = 4\n");
    for (const DerivationStep& step : form.normal_steps) EXPECT_NE(step.rule, "inline");
    EXPECT_EQ(form.kernels.size(), 2U) << describe(form);
    EXPECT_LT(error_of_steps(form), 1e-9);
}

TEST(OrderContractions, AProductOfThreeMatricesTakesTwoSums) {
    const std::string text =
        "f(A[i, j], B[j, k], C[k, l]) -> O[i, l]\n    O[i, l] = sum(j, k) A[i, j] * B[j, k] * C[k, l]\n"
        "sizes i = j = k = l = 6\n";
    const Derived d = derived(text);
    EXPECT_TRUE(has_rule(d, "order contraction"));
    for (const Equation& e : d.diagram.equations) EXPECT_LE(e.reduce_axes.size(), 1U);
    EXPECT_LT(error_of_steps(d), 1e-9);
}

TEST(OrderContractions, TheCheaperSideIsContractedFirst) {
    const Derived d = derived(
        "f(A[i, j], B[j, k], C[k, l]) -> O[i, l]\n    O[i, l] = sum(j, k) A[i, j] * B[j, k] * C[k, l]\n"
        "sizes i = 100, j = 90, k = 80, l = 1\n");
    const auto part = d.diagram.find_array("O_part");
    ASSERT_TRUE(part.has_value());
    const auto& axes = d.diagram.array(*part).axes;
    EXPECT_EQ(d.diagram.definition(*part)->reduce_axes, std::vector<AxisId>{*d.diagram.find_axis("k")});
    EXPECT_NE(std::find(axes.begin(), axes.end(), *d.diagram.find_axis("j")), axes.end());
}

TEST(OrderContractions, WhatOneOperandAloneHasIsSummedFirst) {
    const std::string text =
        "f(A[i, j], b[k]) -> O[i]\n    O[i] = sum(j, k) A[i, j] * b[k]\nsizes i = 3, j = 4, k = 5\n";
    const Derived d = derived(text);
    for (const Equation& e : d.diagram.equations) EXPECT_LE(e.reduce_axes.size(), 1U);
    EXPECT_LT(error_of_steps(d), 1e-9);
}

TEST(OrderContractions, IntegersAndPlainProductsStay) {
    EXPECT_FALSE(has_rule(derived("f(A[i, j]: i32, B[j, k]: i32, C[k, l]: i32) -> O[i, l]: i32\n"
                                  "    O[i, l] = sum(j, k) A[i, j] * B[j, k] * C[k, l]\nsizes i = j = k = l = 3\n"),
                          "order contraction"));
    EXPECT_FALSE(
        has_rule(derived("f(A[i, k], B[k, l], s[i]) -> O[i, l]\n    O[i, l] = sum(k) A[i, k] * B[k, l] * s[i]\n"
                         "sizes i = k = l = 30\n"),
                 "order contraction"));
}

TEST(Gather, AlternativesAreFewRankedAndCanBeTakenInstead) {
    const Derived d = derived(
        "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    P[q, x] = softmax(x) "
        "S[q, x]\n"
        "    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = 3, x = 5, k = 2, d = 2\n");
    ASSERT_EQ(d.regions.size(), 1U);
    const auto& alternatives = d.regions.front().alternatives;
    EXPECT_EQ(d.kernels.size(), 1U);
    EXPECT_GT(alternatives.size(), 2U);
    EXPECT_LE(alternatives.size(), 16U);
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
        EXPECT_FALSE(alternatives[i].condition.empty());
        const Derived other = rederive(d, {i});
        EXPECT_EQ(verify(other), std::vector<std::string>{});
        EXPECT_EQ(other.kernels.size(), alternatives[i].kernels.size());
        EXPECT_LT(error_of_steps(other), 1e-9);
    }
}

/// Nothing grows faster than the diagram: neither the text nor the number of nodes.
TEST(Gather, AChainOfMapsPrintsInProportionToItsLength) {
    const auto text_of = [](int lines) {
        std::string text = "f(X0[i]) -> Y[i]\n";
        for (int j = 1; j <= lines; ++j)
            text += "    X" + std::to_string(j) + "[i] = X" + std::to_string(j - 1) + "[i] * X" +
                    std::to_string(j - 1) + "[i] + X" + std::to_string(j - 1) + "[i]\n";
        return text + "    Y[i] = X" + std::to_string(lines) + "[i] * 1\nsizes i = 2\n";
    };
    const std::size_t short_text = describe(derived(text_of(10))).size(),
                      long_text = describe(derived(text_of(40))).size();
    EXPECT_LT(long_text, 6 * short_text);
}

/// The input's axes as kernels read it.
std::string axes_read(const std::string& text, const std::string& array) {
    const Derived d = derived(text);
    EXPECT_LT(error_of_steps(d), 1e-9) << explain(d);
    std::string out;
    for (const AxisId axis : d.diagram.array(*d.diagram.find_array(array)).axes)
        out += (out.empty() ? "" : ", ") + d.diagram.axis(axis).name;
    return out;
}

TEST(JoinedDimensions, DigitsOfAnIndexAreOneIndex) {
    EXPECT_EQ(
        axes_read("f(K[b, p, k]) -> Y[w, k]\n    Y[w, k] = K[w // 4, w % 4, k]\nsizes w = 4 * b, b = 3, p = 4, k = 2\n",
                  "K"),
        "w, k");
    EXPECT_EQ(
        axes_read(
            "f(K[b, p, k]) -> Y[w, k]\n    Y[w, k] = K[w // size(p), w % size(p), k]\nsizes w = b * p, b = 3, p = 4, k "
            "= 2\n",
            "K"),
        "w, k");
    // Numbers that agree.
    EXPECT_EQ(
        axes_read("f(K[b, p, k]) -> Y[w, k]\n    Y[w, k] = K[w // 4, w % 4, k]\nsizes w = 12, b = 3, p = 4, k = 2\n",
                  "K"),
        "w, k");
    // Several factors, one after the other and at once; two groups of dimensions; a rest that goes on.
    EXPECT_EQ(
        axes_read("f(K[a, b, c]) -> Y[w]\n    Y[w] = K[w // 6, w // 2 % 3, w % 2]\nsizes w = 24, a = 4, b = 3, c = 2\n",
                  "K"),
        "w");
    EXPECT_EQ(
        axes_read(
            "f(K[a, b, c]) -> Y[w]\n    Y[w] = K[w // 2 // 3, w // 2 % 3, w % 2]\nsizes w = 24, a = 4, b = 3, c = 2\n",
            "K"),
        "w");
    EXPECT_EQ(axes_read("f(K[a, b, c, d]) -> Y[v, w]\n    Y[v, w] = K[v // 3, v % 3, w // 2, w % 2]\n"
                        "sizes v = 6, w = 4, a = 2, b = 3, c = 2, d = 2\n",
                        "K"),
              "v, w");
    EXPECT_EQ(
        axes_read(
            "f(K[a, b], Q[w]) -> Y[n]\n    Y[n] = K[n // 3 % 2, n % 3] * Q[n % 6]\nsizes n = 12, w = 6, a = 2, b = 3\n",
            "K"),
        "w");
    // All reads, also those that say where another array is read.
    EXPECT_EQ(axes_read("f(K[b, p, k]) -> Y[w, k], Z[w]\n    Y[w, k] = K[w // 4, w % 4, k]\n"
                        "    Z[w] = sum(k) K[(size(w) - 1 - w) // 4, (size(w) - 1 - w) % 4, k]\nsizes w = 4 * b, b = "
                        "3, p = 4, k = 2\n",
                        "K"),
              "w, k");
}

TEST(JoinedDimensions, OtherReadsKeepTheDimensions) {
    // Rows that are not read whole, another divisor, digits of two numbers, a plain read, and no axis of as many
    // values.
    EXPECT_EQ(axes_read("f(K[b, p]) -> Y[w]\n    Y[w] = K[w // 4, w % 4]\nsizes w = 12, b = 3, p = 5\n", "K"), "b, p");
    EXPECT_EQ(axes_read("f(K[b, p]) -> Y[w]\n    Y[w] = K[w // 6, w % 4]\nsizes w = 12, b = 3, p = 4\n", "K"), "b, p");
    EXPECT_EQ(axes_read("f(K[b, p]) -> Y[w, v]\n    Y[w, v] = K[w // 4, v % 4]\nsizes w = v = 12, b = 3, p = 4\n", "K"),
              "b, p");
    EXPECT_EQ(
        axes_read(
            "f(K[b, p]) -> Y[w], Z[b]\n    Y[w] = K[w // 4, w % 4]\n    Z[b] = K[b, 0]\nsizes w = 12, b = 3, p = 4\n",
            "K"),
        "b, p");
    EXPECT_EQ(axes_read("f(K[b, p]) -> Y[w]\n    Y[w] = K[w // 4, w % 4]\nsizes w = 8, b = 3, p = 4\n", "K"), "b, p");
}

/// Whether the derivation makes one axis of some, and each of its steps means the definition.
bool flattens(const std::string& text) {
    const Derived d = derived(text);
    EXPECT_LT(error_of_steps(d), 1e-9) << explain(d);
    return has_rule(d, "flatten axes");
}

TEST(FlattenAxes, AxesOfASumThatStandBesideEachOtherBecomeOne) {
    const Derived d = derived(
        "f(A[q, h, k], W[h, k, n]) -> O[q, n]\n    O[q, n] = sum(h, k) A[q, h, k] * W[h, k, n]\n"
        "sizes q = 3, h = 2, k = 5, n = 4\n");
    ASSERT_TRUE(has_rule(d, "flatten axes")) << explain(d);
    const Equation& sum = d.diagram.equations.back();
    ASSERT_EQ(sum.reduce_axes.size(), 1U);
    EXPECT_EQ(d.diagram.axis(sum.reduce_axes.front()).name, "hk");
    EXPECT_EQ(bind_sizes(d.source).value()[sum.reduce_axes.front()], 10);
    EXPECT_LT(error_of_steps(d), 1e-9);
    // Three axes, and arrays between equations.
    EXPECT_TRUE(flattens(
        "f(A[q, r, s, c], W[r, s, c, n]) -> O[q, n]\n    B[q, r, s, c] = exp(A[q, r, s, c])\n"
        "    O[q, n] = sum(r, s, c) B[q, r, s, c] * W[r, s, c, n]\nsizes q = 3, r = 2, s = 3, c = 2, n = 4\n"));
    EXPECT_TRUE(flattens("f(A[a, b]) -> M\n    M = max(a, b) A[a, b]\nsizes a = 3, b = 4\n"));
    // One sum and one map of both.
    EXPECT_TRUE(
        flattens("f(X[n, y, z], W[y, z]) -> V[n]\n    M[n] = sum(y, z) X[n, y, z]\n"
                 "    V[n] = sum(y, z) (X[n, y, z] - M[n])^2 * W[y, z]\nsizes n = 2, y = 3, z = 4\n"));
}

TEST(FlattenAxes, AxesThatAreToldApartStay) {
    const auto stays = [](const std::string& text) { EXPECT_FALSE(flattens(text)) << text; };
    // in another order, with one between them, with one alone
    stays(
        "f(A[q, k, h], W[h, k, n]) -> O[q, n]\n    O[q, n] = sum(h, k) A[q, k, h] * W[h, k, n]\n"
        "sizes q = 3, h = 2, k = 5, n = 4\n");
    stays(
        "f(A[h, q, k], W[h, k, n]) -> O[q, n]\n    O[q, n] = sum(h, k) A[h, q, k] * W[h, k, n]\n"
        "sizes q = 3, h = 2, k = 5, n = 4\n");
    stays("f(A[h, k], W[h]) -> S\n    S = sum(h, k) A[h, k] * W[h]\nsizes h = 2, k = 5\n");
    // read at other indices, or as a number
    stays(
        "f(A[q, h, k], W[h, k]) -> O[q]\n    O[q] = sum(h, k) A[q, h, k] * W[h, size(k) - 1 - k]\n"
        "sizes q = 3, h = 2, k = 5\n");
    stays("f(A[q, h, k]) -> O[q]\n    O[q] = sum(h, k) where(k <= h, A[q, h, k], 0)\nsizes q = 3, h = 2, k = 5\n");
    // reduced by one equation and woven by another
    stays("f(A[h, k]) -> S, T[h, k]\n    S = sum(h, k) A[h, k]\n    T[h, k] = A[h, k] + S\nsizes h = 2, k = 5\n");
    stays("f(A[h, k]) -> S[h], T\n    S[h] = sum(k) A[h, k]\n    T = sum(h, k) A[h, k] * S[h]\nsizes h = 2, k = 5\n");
    // named by the schedule
    stays("f(A[h, k]) -> S\n    S = sum(h, k) A[h, k]\nsizes h = 2, k = 5\nschedule\n    stream h = 1\n");
}

const char* const grouped_queries =
    "f(Q[h, q, k], K[x, k], V[x, d]) -> O[h, q, d]\n    S[h, q, x] = sum(k) Q[h, q, k] * K[x, k]\n"
    "    P[h, q, x] = softmax(x) S[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[x, d]\n"
    "sizes h = 3, q = 2, x = 5, k = 2, d = 3\n";

TEST(FlattenAxes, RowsOfAProductBecomeOneAxisWhereThatIsWanted) {
    const Derived first = derived(grouped_queries);
    EXPECT_FALSE(has_rule(first, "flatten axes"));
    const auto flat = rewritten(first, {.flat_rows = true});
    ASSERT_TRUE(flat.has_value());
    EXPECT_EQ(verify(*flat), std::vector<std::string>{});
    EXPECT_TRUE(has_rule(*flat, "flatten axes")) << explain(*flat);
    EXPECT_LT(error_of_steps(*flat), 1e-9) << explain(*flat);
    EXPECT_FALSE(rewritten(*flat, {.flat_rows = true}));
    EXPECT_TRUE(rederive(*flat, std::vector<std::size_t>(flat->regions.size(), 0)).rewriting.flat_rows);
}

TEST(ComputeAgain, WhatRowsAndColumnsConsumeHasAVersionForEach) {
    const Derived first = derived(
        "f(A[q, k], B[x, k], V[x, d], W[q, d]) -> Y[q, d], Z[x, d]\n"
        "    S[q, x] = sum(k) A[q, k] * B[x, k]\n    E[q, x] = exp(S[q, x])\n"
        "    R[q] = sum(x) E[q, x]\n    Y[q, d] = sum(x) E[q, x] * V[x, d]\n"
        "    Z[x, d] = sum(q) E[q, x] / R[q] * W[q, d]\n"
        "sizes q = 5, x = 4, k = 3, d = 2\n");
    const auto again = rewritten(first, {.again = true});
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(verify(*again), std::vector<std::string>{});
    EXPECT_LT(error_of_steps(*again), 1e-9) << explain(*again);
    // The rows' sum is one array, which both kernels read.
    for (const char* name : {"S", "S_2", "E", "E_2", "R"}) EXPECT_TRUE(again->diagram.find_array(name)) << name;
    EXPECT_FALSE(again->diagram.find_array("R_2"));
    // No array of all pairs lies between kernels.
    const AxisId q = *again->diagram.find_axis("q"), x = *again->diagram.find_axis("x");
    for (const Kernel& kernel : again->kernels)
        for (const ArrayId id : kernel.outputs) {
            const std::vector<AxisId>& axes = again->diagram.array(id).axes;
            EXPECT_FALSE(contains(axes, q) && contains(axes, x)) << again->diagram.array(id).name;
        }
    EXPECT_FALSE(rewritten(*again, {.again = true}));
}

TEST(ComputeAgain, NothingWhereAllConsumeAlike) { EXPECT_FALSE(rewritten(derived(grouped_queries), {.again = true})); }

TEST(FlattenAxes, RowsThatAreToldApartStay) {
    const auto stays = [](const std::string& keys, const std::string& scores, const std::string& schedule) {
        const Derived first = derived(
            fmt::format("f(Q[h, q, k], K[{0}], V[x, d]) -> O[h, q, d]\n    S[h, q, x] = sum(k) Q[h, q, k] * K[{0}]\n"
                        "    P[h, q, x] = softmax(x) {1}\n    O[h, q, d] = sum(x) P[h, q, x] * V[x, d]\n"
                        "sizes h = 3, q = 2, x = 5, k = 2, d = 3\n{2}",
                        keys, scores, schedule));
        EXPECT_FALSE(rewritten(first, {.flat_rows = true})) << explain(first);
    };
    stays("h, x, k", "S[h, q, x]", "");
    stays("x, k", "where(x <= q, S[h, q, x], -inf)", "");
    stays("x, k", "S[h, q, x] * (h + 1)", "");
    stays("x, k", "S[h, q, x]", "schedule\n    group q = 1\n");
}

}  // namespace
}  // namespace napkin::test_normal_form
