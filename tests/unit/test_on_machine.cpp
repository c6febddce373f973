// A kernel on a machine: waves of groups, streams split over idle cores, chunks that are skipped, types, and what fits
// nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cost/accumulators.hpp"
#include "cost/multilevel.hpp"
#include "cost/report.hpp"
#include "costed.hpp"
#include "support/in_letters.hpp"
#include "tile/expand.hpp"

namespace napkin::test_on_machine {
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
    const double flops = 2.0 * 128 * 133 * 4096 * 128, sustained = 0.92 * 2.0 * 2048 * 132 * 1.83e9;
    ASSERT_FALSE(cost.ceilings.empty());
    double tensor = 0;
    for (const Ceiling& ceiling : cost.ceilings)
        if (ceiling.what == "tensor") tensor = ceiling.seconds;
    EXPECT_NEAR(tensor, flops / sustained * 264 / 133, 1e-9 * tensor);
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
    // Σ_ℓ Ḣ_ℓ⁻¹·H*(a, M_ℓ), where a contraction whose results take 2 bytes has M ≥ 2·g_a·g_c: H* = 2·ac +
    // 4·abc·(M/2)^-½ bytes.
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

    // Integer sizes on the machine: each level as the formula has it at the tiles of its groups.
    const KernelOnMachine cost = place(c).value();
    for (const char* name : {"L2", "SMEM"}) {
        const LevelLoad& load = load_of(cost, name);
        const double tile = static_cast<double>(load.group.at(axis(c, "a")) * load.group.at(axis(c, "c")));
        // A core's sizes are those of least time, and what instructions take.
        EXPECT_NEAR(load.transfers_bytes / closed(2 * tile), load.level.is_core ? 1.1 : 1, load.level.is_core ? 0.1 : 0.02);
        EXPECT_DOUBLE_EQ(load.seconds, load.transfers_bytes * load.level.seconds_per_byte);
        EXPECT_DOUBLE_EQ(load.expected_s, load.transfers_bytes * load.level.sustained_seconds_per_byte);
    }
    // The cores hold the results of an L2's group, and no more.
    const LevelLoad& l2 = load_of(cost, "L2");
    EXPECT_LE(l2.memory_bytes, 132 * (cost.memory_bytes + cost.accumulator_bytes) * 1.01);
    EXPECT_GT(l2.memory_bytes, 132 * cost.accumulator_bytes * 0.9);
}

TEST(OnMachine, QuantizationGainsByTermInTheClosedForm) {
    // Eq. 3: each term grows as q^(1+β): from FP32 to FP16 4 times for β = 1 and 2^1.5 for β = ½, when all of a core's
    // values shrink.
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
    EXPECT_THAT(cost.errors()[0].message,
                HasSubstr("does not fit h100-sxm5 with the groups that are set: q = 4096 take"));
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

TEST(OnMachine, AccumulatorsLieInRegistersInTheirOwnType) {
    const std::string matmul_e4m3 = R"(
matmul(A[a, b]: e4m3, B[b, c]: e4m3) -> C[a, c]: e4m3
    C[a, c] = sum(b) A[a, b] * B[b, c]
)";
    const Compilation c = compile(matmul_e4m3, "h200", {{"a", 8192}, {"b", 8192}, {"c", 8192}});
    const KernelOnMachine cost = place(c).value();
    const double a = static_cast<double>(cost.group.at(axis(c, "a"))),
                 n = static_cast<double>(cost.group.at(axis(c, "c")));
    EXPECT_EQ(cost.accumulator_bytes, 4 * a * n) << "f32, whatever the output's type";
    EXPECT_LE(cost.accumulator_bytes, 0.75 * 65536 * 4) << "what accumulators may fill of the registers";
    MachineCostOptions options;
    options.group = {{axis(c, "a"), 512}, {axis(c, "c"), 256}};
    EXPECT_FALSE(place(c, options).ok()) << "twice the registers";
}

TEST(OnMachine, ATileThatIsRunIsNotRefused) {
    // Three warpgroups of 64 rows: accumulators of 96 KiB for the scores and as much for the result.
    const Compilation c = compile(costed::attention_f16, "h200", {{"q", 8192}, {"x", 8192}, {"k", 128}, {"d", 128}});
    MachineCostOptions options;
    options.group = {{axis(c, "q"), 192}};
    options.stream = {{axis(c, "x"), 128}};
    const auto cost = place(c, options);
    ASSERT_TRUE(cost.ok()) << render(cost.errors());
    EXPECT_EQ(cost->accumulator_bytes, 2 * 192 * 128 * 4);
    EXPECT_LE(cost->memory_bytes, 227 * 1024);
}

TEST(OnMachine, ASecondComputedOperandLiesInSharedMemory) {
    // Both operands of C are computed: one alone comes from registers.
    const std::string chain = R"(
chain(A[a, b]: f16, B[b, c]: f16, D[e, b]: f16) -> C[a, e]: f16
    X[a, c] = sum(b) A[a, b] * B[b, c]
    Y[e, c] = sum(b) D[e, b] * B[b, c]
    C[a, e] = sum(c) X[a, c] * Y[e, c]
)";
    PipelineOptions pipeline;
    pipeline.sizes = {{"a", 64}, {"b", 64}, {"c", 64}, {"e", 64}};
    pipeline.machine = "h200";
    pipeline.until = Pass::choose;
    const Compilation c = run_pipeline(std::make_shared<const Source>(Source{"<text>", chain}), pipeline).value();
    ASSERT_EQ(c.derived.kernels.size(), 1U);
    const CoreColumns columns = core_columns(c.derived.diagram, expand(c.derived, c.derived.kernels[0]),
                                             default_grouped(c.derived.kernels[0]), c.machine);
    const auto holds = [&](const std::vector<MemoryColumn>& of, const std::string& name) {
        const ArrayId array = c.derived.diagram.find_array(name).value();
        return std::any_of(of.begin(), of.end(), [&](const MemoryColumn& m) { return contains(m.arrays, array); });
    };
    EXPECT_TRUE(holds(columns.accumulators, "X"));
    EXPECT_FALSE(holds(columns.memory, "X"));
    EXPECT_TRUE(holds(columns.memory, "Y"));
    EXPECT_FALSE(holds(columns.accumulators, "Y"));
    EXPECT_TRUE(holds(columns.accumulators, "C"));
    const Machine cpu = load_machine("generic-cpu").value();
    const CoreColumns on_cpu = core_columns(c.derived.diagram, expand(c.derived, c.derived.kernels[0]),
                                            default_grouped(c.derived.kernels[0]), cpu);
    EXPECT_TRUE(on_cpu.accumulators.empty());
    EXPECT_TRUE(holds(on_cpu.memory, "X"));
}

TEST(OnMachine, TheBoundIsNotAboveWhatIsMeasured) {
    const std::string matmul_bf16 = R"(
matmul(A[a, b]: bf16, B[b, c]: bf16) -> C[a, c]: bf16
    C[a, c] = sum(b) A[a, b] * B[b, c]
)";
    const Compilation c = compile(matmul_bf16, "h200", {{"a", 4096}, {"b", 4096}, {"c", 4096}});
    MachineCostOptions options;
    options.group = {{axis(c, "a"), 128}, {axis(c, "c"), 256}};
    const KernelOnMachine cost = place(c, options).value();
    const double measured = 2.0 * 4096 * 4096 * 4096 / 753e12;  // cuBLAS on one H200
    EXPECT_LT(cost.bound_s, measured);
    EXPECT_LE(cost.bound_s, cost.seconds);
    EXPECT_NEAR(cost.seconds / measured, 1, 0.1);
}

TEST(OnMachine, OverheadsEnterTheExpectedTime) {
    const std::map<std::string, std::int64_t> sizes{{"q", 8192}, {"x", 8192}, {"k", 64}, {"d", 64}};
    const Compilation c = compile(costed::attention_f16, "h200", sizes);
    MachineCostOptions options;
    options.group = {{axis(c, "q"), 64}};
    options.stream = {{axis(c, "x"), 128}};
    const KernelOnMachine plain = place(c, options).value();
    options.special_overhead = 1;
    const KernelOnMachine slower = place(c, options).value();
    EXPECT_GT(slower.seconds, plain.seconds);
    EXPECT_EQ(slower.bound_s, plain.bound_s) << "a bound counts no overhead";
    // Where the tensor core binds, its waits are in the time.
    options.special_overhead = 0;
    Machine waiting = c.machine;
    waiting.levels[core_memory_level(waiting)].bandwidth_bytes_per_s.value *= 4;
    Machine unhindered = waiting;
    unhindered.instructions[0].overhead_clocks.value = 0;
    const auto seconds_on = [&](const Machine& machine) {
        return cost_on_machine(c.derived, c.derived.kernels[0], c.extents, machine, options)->seconds;
    };
    EXPECT_LT(seconds_on(unhindered), 0.9 * seconds_on(waiting));

    // One instruction's rows: each contraction of each chunk is waited for. Twice as many rows hide it.
    const auto waits = [](const KernelOnMachine& cost) {
        double seconds = 0;
        for (const UnitLoad& unit : cost.units)
            if (unit.pipe == "tensor") seconds += unit.overhead_s;
        return seconds;
    };
    const Instruction& wgmma = c.machine.instructions[0];
    EXPECT_NEAR(waits(plain), 2 * (8192 / 128) * (8192 / 64) * wgmma.overhead_clocks.value / (132 * 1.83e9), 1e-9);
    options.group = {{axis(c, "q"), 128}};
    EXPECT_EQ(waits(place(c, options).value()), 0);
    EXPECT_NEAR(plain.starts_s, c.machine.group_s.value, 1e-12) << "128 groups on 132 cores";
}

TEST(OnMachine, GroupsStartOneAfterTheOtherUnlessTwoFit) {
    const Compilation c = compile(costed::matmul_f16, "h200", {{"a", 8192}, {"b", 4096}, {"c", 8192}});
    MachineCostOptions options;
    options.group = {{axis(c, "a"), 128}, {axis(c, "c"), 256}};
    const KernelOnMachine large = place(c, options).value();
    EXPECT_NEAR(large.starts_s, c.machine.group_s.value * std::ceil(64 * 32 / 132.0), 1e-12);
    Machine slow = c.machine;
    slow.group_s.value *= 10;
    const KernelOnMachine slower = cost_on_machine(c.derived, c.derived.kernels[0], c.extents, slow, options).value();
    EXPECT_NEAR(slower.seconds - large.seconds, 9 * large.starts_s, 1e-9);
    options.group = {{axis(c, "a"), 128}, {axis(c, "c"), 128}};
    EXPECT_EQ(place(c, options).value().starts_s, c.machine.group_s.value)
        << "accumulators of 64 KiB leave room for a second group";
}

TEST(OnMachine, AClusterIsNotAdvisedWhereItLosesTime) {
    const std::string heads = R"(
attention(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
)";
    const Compilation c = compile(heads, "h200", {{"h", 32}, {"q", 8192}, {"x", 8192}, {"k", 128}, {"d", 128}});
    const KernelOnMachine alone = place(c).value();
    for (const LinkSaving& saving : link_savings(c.derived, c.derived.kernels[0], c.extents, c.machine, alone)) {
        if (saving.advised_s() == 0) continue;
        MachineCostOptions options;
        options.levels.cluster = saving.best;
        EXPECT_LT(place(c, options).value().seconds, alone.seconds) << saving.link << " of " << saving.best;
    }
    MachineCostOptions options;
    for (const std::int64_t cluster : {2, 4, 8}) {
        options.levels.cluster = cluster;
        EXPECT_GE(place(c, options).value().seconds, alone.seconds * 0.999) << "reading a neighbour is slower than L2";
    }
}

TEST(OnMachine, OneDieIsNotSlowerThanItselfWithMoreMemory) {
    for (const char* text : {costed::attention_f16, costed::attention_fp8}) {
        const std::map<std::string, std::int64_t> sizes{{"q", 16384}, {"x", 16384}, {"k", 128}, {"d", 128}};
        const KernelOnMachine h100 = place(compile(text, "h100-sxm5", sizes)).value(),
                              h200 = place(compile(text, "h200", sizes)).value();
        EXPECT_LE(h200.seconds, h100.seconds * 1.001);
        EXPECT_LE(h200.bound_s, h100.bound_s * 1.001);
    }
}

}  // namespace
}  // namespace napkin::test_on_machine
