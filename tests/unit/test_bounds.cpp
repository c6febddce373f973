// What a machine demands of sizes, with the paper's own figures (B.0.1, B.1), and lower bounds on transfers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/bounds.hpp"
#include "cost/compulsory.hpp"
#include "costed.hpp"
#include "derive/stream_choices.hpp"
#include "support/in_letters.hpp"

namespace napkin::test_bounds {
namespace {

using costed::axis;
using testing::HasSubstr;

Bounds bounds_of(const Compilation& c, const MachineCostOptions& options,
                 const std::map<std::string, std::string>& names, double memory_values) {
    const Kernel& kernel = c.derived.kernels[0];
    const TiedLetters tied = tied_letters(c.derived.diagram, names);
    const Optimum best = optimum(with_tied(symbolic_cost(c.derived, kernel, default_grouped(kernel)), tied));
    const KernelOnMachine cost = cost_on_machine(c.derived, kernel, c.extents, c.machine, options).value();
    return bounds(c.derived, kernel, best, tied, c.extents, c.machine, cost,
                  io_bounds(c.derived, kernel, c.extents, memory_values, may_skip(kernel)));
}

TEST(Bounds, GroupsOf295RowsKeepMemoryFromBinding) {
    // B.0.1: 64·128·(1 + 2) bytes a chunk, 6 clocks a row: 24576 · 132 · 1.83 GHz / (3352 GB/s · 6).
    const Compilation c = costed::compile(costed::attention_fp8, "h100-sxm5",
                                          {{"q", 8192}, {"x", 8192}, {"k", 128}, {"d", 128}});
    MachineCostOptions options;
    options.stream[axis(c, "x")] = 64;
    options.group[axis(c, "q")] = 128;
    const Bounds limits = bounds_of(c, options, {{"k", "d"}}, 100000);
    ASSERT_GE(limits.groups.size(), 1U);
    const GroupBound& bound = limits.groups[0];
    EXPECT_EQ(bound.level, "L2");
    EXPECT_EQ(bound.axes, std::vector<AxisId>{axis(c, "q")});
    EXPECT_DOUBLE_EQ(bound.bytes, 24576);
    EXPECT_DOUBLE_EQ(bound.clocks, 6);
    EXPECT_NEAR(bound.at_least, 295.2, 0.05);
    EXPECT_DOUBLE_EQ(bound.at_least, 24576 * 132 * 1.83e9 / (3352e9 * 6));
}

TEST(Bounds, LeastMemoryAndDepthOfAContraction) {
    // B.1: M^-½ and 1/(2b) below Ḣ/K̇ at 989 TFLOP/s, with 1.676e12 and 6e12 values a second.
    const Compilation c = costed::compile(costed::matmul_f16, "h100-sxm5", {{"a", 8192}, {"b", 8192}, {"c", 8192}});
    const Bounds limits = bounds_of(c, {}, {}, 116224);
    const auto at_least = [&](const std::string& level, const std::string& symbol) {
        for (const TermBound& bound : limits.terms)
            if (bound.level == level && symbol_names(c.derived.diagram)(bound.symbol) == symbol) return bound.at_least;
        return 0.0;
    };
    EXPECT_NEAR(at_least("L2", "M"), 348e3, 1000);
    EXPECT_NEAR(at_least("L2", "b"), 295, 0.5);
    EXPECT_NEAR(at_least("SMEM", "M"), 27.2e3, 50);
    EXPECT_NEAR(at_least("SMEM", "b"), 82.5, 0.1);
}

TEST(Bounds, ContractionsHaveAKnownOne) {
    const Compilation c = costed::compile(costed::matmul_f16, "h100-sxm5", {{"a", 4096}, {"b", 2048}, {"c", 1024}});
    const double memory = 10000;
    const Bounds limits = bounds_of(c, {}, {}, memory);
    ASSERT_EQ(limits.io.size(), 2U);
    EXPECT_DOUBLE_EQ(limits.io[0].values, 2 * 4096.0 * 2048 * 1024 / 100);
    EXPECT_THAT(limits.io[0].source, HasSubstr("Hong and Kung"));
    EXPECT_DOUBLE_EQ(limits.io[1].values, 4096.0 * 2048 + 2048.0 * 1024 + 4096.0 * 1024);
}

TEST(Bounds, AttentionsDependsOnWhetherMemoryHoldsAHead) {
    const Compilation c = costed::compile(costed::attention_f16, "h100-sxm5",
                                          {{"q", 16384}, {"x", 8192}, {"k", 128}, {"d", 128}});
    const double points = 16384.0 * 8192.0;
    // M ≥ d²: Ω(q·x·d²/M); below it Ω(q·x·d·M^-½).
    const auto largest = [&](double memory) {
        double most = 0;
        for (const IoBound& bound : bounds_of(c, {}, {{"k", "d"}}, memory).io)
            if (bound.formula.find("Ω") != std::string::npos) most = std::max(most, bound.values);
        return most;
    };
    EXPECT_DOUBLE_EQ(largest(128 * 128 * 4), points / 4);
    EXPECT_DOUBLE_EQ(largest(64 * 64), points * 128 / 64);
}

TEST(Bounds, WhatIsNeverReadNeedNotBeLoaded) {
    const auto compulsory = [](const std::string& text, const std::map<std::string, std::int64_t>& sizes) {
        const Compilation c = costed::compile(text, "h100-sxm5", sizes);
        const Bounds limits = bounds_of(c, {}, {}, 50000);
        const auto found = std::find_if(limits.io.begin(), limits.io.end(),
                                        [](const IoBound& b) { return b.source == "compulsory transfers"; });
        return found == limits.io.end() ? -1 : found->values;
    };
    EXPECT_EQ(compulsory("diagonal(X[i, j]) -> Y[i]\n    Y[i] = X[i, i]\n", {{"i", 100}, {"j", 100}}), 200);
    EXPECT_EQ(compulsory("every_third(X[n]) -> Y[i]\n    Y[i] = X[3 * i]\nsizes n = 3 * i\n", {{"i", 50}}), 100);
    // Windows of 3 every 2 leave nothing out: 2·49 + 3 values.
    EXPECT_EQ(
        compulsory("windows(X[n]) -> Y[i]\n    Y[i] = sum(w) X[2 * i + w]\nsizes n = 2 * i + 1\n", {{"i", 50}, {"w", 3}}),
        101 + 50);
    // Two of 52 indices lie outside of the array.
    const Compilation padded = costed::compile(
        "padded(X[i]) -> Y[i]\n    Y[i] = sum(w) where(i + w >= 1, where(i + w <= size(i), X[i + w - 1], 0), 0)\n",
        "h100-sxm5", {{"i", 50}, {"w", 3}});
    const Kernel& kernel = padded.derived.kernels[0];
    EXPECT_EQ(
        values_read(padded.derived.diagram, statement_work(padded.derived, kernel), kernel.inputs[0], padded.extents), 50);
}

TEST(Bounds, OfSkippedIterationsAreThoseOfOutputs) {
    const Compilation c = costed::compile(
        "band(A[m, k], B[k, n]) -> C[m, n]\n"
        "    C[m, n] = sum(k) where(k - m < 32, where(m - k < 32, A[m, k], 0), 0) * B[k, n]\n",
        "h100-sxm5", {{"m", 4096}, {"k", 4096}, {"n", 4096}});
    const Bounds limits = bounds_of(c, {}, {}, 50000);
    ASSERT_EQ(limits.io.size(), 1U);
    EXPECT_DOUBLE_EQ(limits.io[0].values, 4096.0 * 4096);
    EXPECT_THAT(limits.io[0].formula, HasSubstr("iterations are skipped"));
}

TEST(Bounds, AnIntermediateThatIsSummedUpNeedsNoStoring) {
    // M holds B: A, B and Z once, while a product in memory would take 2·m·n·k/√M.
    const Compilation c = costed::compile(
        "f(A[m, k], B[n, k]) -> Z[m]\n    S[m, n] = sum(k) A[m, k] * B[n, k]\n"
        "    Z[m] = sum(n) S[m, n] * S[m, n]\n",
        "h100-sxm5", {{"m", 4096}, {"k", 8}, {"n", 32}});
    ASSERT_EQ(c.derived.kernels.size(), 1U);
    for (const Derived& form : StreamChoices(c.derived).of(0))
        for (const IoBound& bound : io_bounds(form, form.kernels[0], c.extents, 1000, false))
            EXPECT_LE(bound.values, 4096 * 9 + 8 * 32) << bound.formula;
}

TEST(Bounds, MemoryIsNotCalledAsAnAxisIs) {
    const Compilation c = costed::compile("mm(A[M, K], B[K, N]) -> C[M, N]\n    C[M, N] = sum(K) A[M, K] * B[K, N]\n",
                                          "h100-sxm5", {{"M", 4096}, {"K", 4096}, {"N", 4096}});
    EXPECT_EQ(bounds_of(c, {}, {}, 50000).io[0].formula, "C: 2·M·N·K·M'^(-1/2)");
}

TEST(Bounds, CopiesHaveNoneButTheirArrays) {
    const Compilation c = costed::compile("copy(X[i]) -> Y[i]\n    Y[i] = X[i]\n", "h100-sxm5", {{"i", 1 << 20}});
    const Bounds limits = bounds_of(c, {}, {}, 50000);
    EXPECT_TRUE(limits.groups.empty());
    EXPECT_TRUE(limits.terms.empty());
    ASSERT_EQ(limits.io.size(), 1U);
    EXPECT_DOUBLE_EQ(limits.io[0].values, 2 * 1048576.0);
}

}  // namespace
}  // namespace napkin::test_bounds
