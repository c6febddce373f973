// A kernel on a machine: waves of groups, streams split over idle cores, chunks that are skipped, types, and what fits nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cost/multilevel.hpp"
#include "costed.hpp"
#include "support/in_letters.hpp"

namespace napkin {
namespace {

using costed::axis;
using costed::compile;
using costed::place;
using testing::HasSubstr;

const LevelLoad& load_of(const KernelOnMachine& cost, const std::string& level) {
    for (const LevelLoad& load : cost.levels)
        if (load.level.name == level) return load;
    throw InternalError("no such level");
}

TEST(OnMachine, CoresWaitForTheLastGroups) {
    const Compilation c = compile(costed::matmul_f16, "h100-sxm5", {{"a", 128 * 133}, {"b", 4096}, {"c", 128}});
    MachineCostOptions options;
    options.group = {{axis(c, "a"), 128}, {axis(c, "c"), 128}};
    const KernelOnMachine cost = place(c, options).value();
    EXPECT_EQ(cost.num_groups, 133);
    EXPECT_DOUBLE_EQ(cost.wave, 264.0 / 133) << "133 groups on 132 cores take two waves";
    const double flops = 2.0 * 128 * 133 * 4096 * 128, peak = 2.0 * 2048 * 132 * 1.83e9;
    ASSERT_FALSE(cost.ceilings.empty());
    double tensor = 0;
    for (const Ceiling& ceiling : cost.ceilings)
        if (ceiling.what == "tensor") tensor = ceiling.seconds;
    EXPECT_NEAR(tensor, flops / peak * 264 / 133, 1e-9 * tensor);
    EXPECT_NEAR(cost.flops, flops, 1e-9 * flops);
}

TEST(OnMachine, AStreamIsSplitForIdleCores) {
    // One row of queries: only the stream gives work to more than a core.
    const Compilation c = compile(costed::attention_f16, "h100-sxm5", {{"q", 64}, {"x", 1 << 20}, {"k", 128}, {"d", 128}});
    const KernelOnMachine cost = place(c).value();
    EXPECT_LT(cost.num_groups, 132);
    EXPECT_GT(cost.splits, 1);
    EXPECT_LE(cost.num_groups * cost.splits, 132);
    EXPECT_DOUBLE_EQ(cost.launch_s, 2 * c.machine.launch_s.value) << "the merge is a launch of its own";
    // Enough rows fill the machine without.
    const Compilation full = compile(costed::attention_f16, "h100-sxm5",
                                     {{"q", 1 << 17}, {"x", 4096}, {"k", 128}, {"d", 128}});
    EXPECT_EQ(place(full).value().splits, 1);
}

TEST(OnMachine, SkippedChunksTakeNoTime) {
    const std::string causal = R"(
causal(Q[q, k]: f16, K[x, k]: f16, V[x, d]: f16) -> O[q, d]: f16
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    A[q, x] = where(x <= q, S[q, x], -inf)
    P[q, x] = softmax(x) A[q, x]
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";
    const std::map<std::string, std::int64_t> sizes{{"q", 1 << 15}, {"x", 1 << 15}, {"k", 128}, {"d", 128}};
    const KernelOnMachine half = place(compile(causal, "h100-sxm5", sizes)).value(),
                          all = place(compile(costed::attention_f16, "h100-sxm5", sizes)).value();
    EXPECT_NEAR(half.run_fraction, 0.5, 0.02);
    EXPECT_EQ(all.run_fraction, 1);
    EXPECT_LT(half.seconds, 0.62 * all.seconds);
}

TEST(OnMachine, LevelsAddUpToTheFormula) {
    // Σ_ℓ Ḣ_ℓ⁻¹·H*(a, M_ℓ), where a contraction whose results take 2 bytes has M ≥ 2·g_a·g_c: H* = 2·ac + 4·abc·(M/2)^-½ bytes.
    const double a = 1 << 17, b = 512;
    const Compilation c = compile(costed::matmul_f16, "h100-sxm5", {{"a", 1 << 17}, {"b", 512}, {"c", 1 << 17}});
    const auto closed = [&](double memory) { return 2 * a * a + 4 * a * a * b / std::sqrt(memory / 2); };
    const auto levels = model_levels(c.machine).value();
    const MultiLevel all = multi_level(c.derived, c.derived.kernels[0], {}, c.extents, levels);
    double seconds = 0;
    for (const ModelLevel& level : levels) {
        EXPECT_NEAR(all.bytes.at(level.name) / closed(level.memory_bytes), 1, 1e-12) << level.name;
        seconds += level.seconds_per_byte * closed(level.memory_bytes);
    }
    EXPECT_NEAR(all.seconds / seconds, 1, 1e-12);

    // Integer sizes on the machine: each level as the formula has it at the memory that its groups take in fact.
    const KernelOnMachine cost = place(c).value();
    for (const char* name : {"L2", "SMEM"}) {
        const LevelLoad& load = load_of(cost, name);
        // A core's sizes are those of least time, and what instructions take.
        EXPECT_NEAR(load.transfers_bytes / closed(load.memory_bytes), load.level.is_core ? 1.1 : 1,
                    load.level.is_core ? 0.1 : 0.02);
        EXPECT_DOUBLE_EQ(load.seconds, load.transfers_bytes * load.level.seconds_per_byte);
    }
}

TEST(OnMachine, QuantizationGainsByTermInTheClosedForm) {
    // Eq. 3: each term grows as q^(1+β): from FP32 to FP16 4 times for β = 1 and 2^1.5 for β = ½, when all of a core's values shrink.
    const auto in_bytes = [](const std::string& text, DType type) {
        const Compilation c = compile(text, "h100-sxm5");
        Derived derived = c.derived;
        for (Array& array : derived.diagram.arrays) array.type = type;
        const Kernel& kernel = derived.kernels[0];
        return optimum(with_tied(symbolic_cost(derived, kernel, default_grouped(kernel), Measure::bytes),
                                 tied_letters(derived.diagram, {{"k", "d"}})));
    };
    const char* contraction =
        "f(A[q, d], B[d, x]) -> C[q, x]\n    C[q, x] = sum(d) A[q, d] * B[d, x]\nsizes q = x = d = 8192\n";
    const std::string attention = costed::attention_f16 + std::string("sizes q = x = 65536, k = d = 128\n");
    for (const auto& [text, beta] :
         {std::pair{attention, Rational(1)}, std::pair{std::string(contraction), Rational(1, 2)}}) {
        const auto narrow = in_bytes(text, DType::f16).standard_form(), wide = in_bytes(text, DType::f32).standard_form();
        ASSERT_EQ(narrow.size(), 2U);
        ASSERT_EQ(wide.size(), 2U);
        EXPECT_EQ(narrow[1].beta, beta);
        EXPECT_EQ(wide[0].alpha, Size(2) * narrow[0].alpha);
        EXPECT_EQ(wide[1].alpha, *Size(2).pow(Rational(1) + beta) * narrow[1].alpha) << "β = " << to_string(beta);
    }
}

TEST(OnMachine, WhatFitsAtNoTile) {
    const Compilation c = compile(
        "rows(X[r, k], W[k, c]) -> Y[r, c]\n    T[r, k] = exp(X[r, k])\n    Z[r] = sum(k) T[r, k]\n"
        "    Y[r, c] = sum(k) T[r, k] * W[k, c] / Z[r]\n",
        "h100-sxm5", {{"r", 64}, {"k", 64}, {"c", 64}});
    MachineCostOptions options;
    Machine tiny = c.machine;
    tiny.levels[core_memory_level(tiny)].capacity_bytes.value = 10;
    const auto cost = cost_on_machine(c.derived, c.derived.kernels[0], c.extents, tiny, options);
    ASSERT_FALSE(cost.ok());
    const Diagnostic& d = cost.errors()[0];
    EXPECT_EQ(d.code, "memory-exceeded");
    EXPECT_THAT(d.message, HasSubstr("fits h100-sxm5 at no tile"));
    EXPECT_THAT(d.expected, HasSubstr("at most 10 bytes, what a core has in SMEM"));
    EXPECT_NE(d.hint, "");
    options.planned = true;
    EXPECT_TRUE(cost_on_machine(c.derived, c.derived.kernels[0], c.extents, tiny, options).ok());
}

TEST(OnMachine, SizesByHandThatAreTooLarge) {
    const Compilation c = compile(costed::attention_f16, "h100-sxm5", {{"q", 8192}, {"x", 8192}, {"k", 128}, {"d", 128}});
    MachineCostOptions options;
    options.group = {{axis(c, "q"), 4096}};
    const auto cost = place(c, options);
    ASSERT_FALSE(cost.ok());
    EXPECT_THAT(cost.errors()[0].message, HasSubstr("does not fit h100-sxm5 with the groups by hand: q = 4096 take"));
    EXPECT_THAT(cost.errors()[0].hint, testing::MatchesRegex("q = [0-9]+ fits"));
}

TEST(OnMachine, LinksThatAreNotThere) {
    const Compilation c = compile(costed::matmul_f16, "a100-sxm-80gb", {{"a", 4096}, {"b", 4096}, {"c", 4096}});
    MachineCostOptions options;
    options.levels.cluster = 2;
    EXPECT_EQ(place(c, options).errors()[0].code, "bad-cluster");
    options.levels = {1, 3};
    EXPECT_EQ(place(c, options).errors()[0].code, "bad-devices");
    options.levels = {1, 8};
    const KernelOnMachine eight = place(c, options).value(), one = place(c).value();
    EXPECT_GE(eight.num_groups, one.num_groups);
    EXPECT_EQ(eight.levels[0].level.rule, LevelRule::devices);
    EXPECT_LE(eight.levels[0].seconds, 0);
    EXPECT_GE(eight.levels[0].seconds + eight.levels[1].seconds, 0) << "what crosses between devices";
}

TEST(OnMachine, SizesByHandAreTaken) {
    const Compilation c = compile(costed::attention_f16, "h200", {{"q", 8192}, {"x", 8192}, {"k", 128}, {"d", 128}});
    MachineCostOptions options;
    options.group = {{axis(c, "q"), 136}};
    options.stream = {{axis(c, "x"), 96}};
    const KernelOnMachine cost = place(c, options).value();
    EXPECT_EQ(cost.group.at(axis(c, "q")), 136);
    EXPECT_EQ(cost.stream.at(axis(c, "x")), 96);
    EXPECT_EQ(cost.num_groups, std::ceil(8192.0 / 136));
}

}  // namespace
}  // namespace napkin
