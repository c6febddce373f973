// The paper's six steps and its Tables 1 to 3, from a schedule file; what depends on what; what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include "costed.hpp"
#include "machine/peaks.hpp"
#include "plan/choose.hpp"
#include "plan/overrides.hpp"
#include "run/pipeline.hpp"
#include "schedule/fragments.hpp"
#include "stepped.hpp"
#include "steps/report.hpp"
#include "steps/tell.hpp"
#include "support/json.hpp"
#include "support/parse_tile.hpp"
#include "support/paths.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"
#include "tile/expand.hpp"
#include "tile/print.hpp"
#include "tile/uses.hpp"
#include "tile/verify.hpp"

namespace napkin::test_steps {
namespace {

using stepped::file;
using stepped::operation;
using stepped::replaced;
using stepped::row;
using stepped::steps;
using stepped::unit;

std::string paper() { return file("examples/schedules/napkin.nk"); }
std::string tables() { return file("examples/schedules/napkin-table-1.schedule"); }

KernelSteps kernel(const std::string& text, const std::string& schedule, const std::string& machine = "h100-sxm5") {
    auto report = steps(text, schedule, machine);
    EXPECT_TRUE(report.ok()) << render(report.errors());
    return report.value().kernels.at(0);
}
TEST(Steps, TableOneOfThePaper) {
    const KernelSteps k = kernel(paper(), tables());
    struct Wanted {
        const char *name, *size;
        DType type;
        HeldAt at;
        std::int64_t block, warpgroup;
    };
    for (const Wanted& w : {Wanted{"Q", "w_q×k", DType::e4m3, HeldAt::memory, 0, 16384},
                            {"K", "s_x×k", DType::e4m3, HeldAt::memory, 16384, 0},
                            {"V", "s_x×d", DType::f16, HeldAt::memory, 32768, 0},
                            {"S", "w_q×s_x", DType::f16, HeldAt::fragments, 0, 16384},
                            {"S_smem", "w_q×s_x", DType::f16, HeldAt::memory, 0, 16384},
                            {"weight", "t_q×s_x", DType::f16, HeldAt::threads, 0, 16384},
                            {"weight_smem", "w_q×p_x", DType::f16, HeldAt::memory, 0, 8192},
                            {"P_M", "t_q×3", DType::f16, HeldAt::threads, 0, 768},
                            {"O_acc", "t_q×d", DType::f16, HeldAt::threads, 0, 32768},
                            {"O_acc_delta", "w_q×u_d", DType::f16, HeldAt::fragments, 0, 8192},
                            {"O_acc_delta_smem", "w_q×u_d", DType::f16, HeldAt::memory, 0, 8192},
                            {"O_acc_delta_thread", "t_q×p_d", DType::f16, HeldAt::threads, 0, 2048}}) {
        const ConfigurationRow& r = row(k, w.name);
        EXPECT_EQ(r.size, w.size) << w.name;
        EXPECT_EQ(r.type, w.type) << w.name;
        EXPECT_EQ(r.at, w.at) << w.name;
        EXPECT_EQ(r.block_bytes, w.block) << w.name;
        EXPECT_EQ(r.warpgroup_bytes, w.warpgroup) << w.name;
    }
    EXPECT_EQ(k.configuration.size(), 12u);
    EXPECT_EQ(row(k, "K").stages, 2);
    EXPECT_EQ(&row(k, "S_thread"), &row(k, "weight"));
    EXPECT_EQ(&row(k, "O"), &row(k, "O_acc"));
}

TEST(Steps, TableTwoOfThePaper) {
    const KernelSteps k = kernel(paper(), tables());
    const auto& [memory, registers] = std::tie(k.budgets.at(0), k.budgets.at(1));
    EXPECT_EQ(memory.capacity_bytes, 227 * 1024);
    EXPECT_EQ(memory.block_bytes, 48 * 1024);
    EXPECT_EQ(memory.warpgroup_bytes, 48 * 1024);
    EXPECT_NEAR(memory.fit(), 3.7, 0.05);
    EXPECT_EQ(memory.excess_block, 35 * 1024);
    EXPECT_NEAR(memory.excess_warpgroup / 1024, 11.67, 0.005);
    EXPECT_EQ(registers.capacity_bytes, 256 * 1024);
    EXPECT_EQ(registers.block_bytes, 0);
    EXPECT_EQ(registers.warpgroup_bytes, 74.75 * 1024);
    EXPECT_NEAR(registers.fit(), 3.4, 0.05);
    EXPECT_EQ(registers.excess_block, 31.75 * 1024);
    EXPECT_NEAR(registers.excess_warpgroup / 1024, 10.58, 0.005);
    EXPECT_NEAR(registers.excess_thread, 85, 0.5);
    EXPECT_EQ(k.num_warpgroups, 3);
    // 74.75 KB of 128 threads are 149.5 registers each, beside addresses, of 65536 / 384 in whole units of 8.
    EXPECT_EQ(k.registers.accumulators + k.registers.values, 149.5);
    EXPECT_EQ(k.registers.limit, 168);
    EXPECT_FALSE(k.registers.addresses_reason.empty());
}

TEST(Steps, TableThreeOfThePaper) {
    const KernelSteps k = kernel(paper(), tables());
    EXPECT_EQ(operation(k, "S", "tensor").operations, 16384);
    EXPECT_EQ(operation(k, "S", "tensor").per_clock, 8192);
    EXPECT_EQ(operation(k, "S", "tensor").clocks(), 2);
    EXPECT_EQ(unit(k, "exp").operations, 65);
    EXPECT_EQ(operation(k, "weight", "exp").per_clock, 16);
    EXPECT_NEAR(unit(k, "exp").clocks, 4.06, 0.005);
    EXPECT_EQ(operation(k, "O_acc", "tensor").operations, 16384);
    EXPECT_EQ(operation(k, "O_acc", "tensor").per_clock, 4096);
    EXPECT_EQ(operation(k, "O_acc", "tensor").clocks(), 4);
    EXPECT_EQ(operation(k, "O_acc", "fma").operations, 256);
    EXPECT_EQ(operation(k, "O_acc", "fma").per_clock, 512);
    EXPECT_EQ(operation(k, "O_acc", "fma").clocks(), 0.5);
    EXPECT_EQ(k.throughput.lower_bound(), 6);
    EXPECT_NEAR(k.throughput.tensor_flop_per_s / 1e15, 1.32, 0.005);
    EXPECT_NEAR(k.throughput.floors.at(0).rows, 295, 0.5);
}

/// Each change moves just the figures that follow from it.
TEST(Steps, EveryFigureFollowsFromWhatItDependsOn) {
    const std::string t = tables();
    const std::string alone = replaced(t, "384", "128");
    EXPECT_EQ(row(kernel(paper(), replaced(alone, "precision O_acc           f16", "precision O_acc f32")), "O_acc").warpgroup_bytes,
              65536);
    EXPECT_EQ(row(kernel(paper(), replaced(alone, "precision weight          f16", "precision weight f32")), "weight").warpgroup_bytes,
              32768);
    EXPECT_EQ(row(kernel(replaced(paper(), "Q[q, k]: e4m3, K[x, k]: e4m3", "Q[q, k]: f16, K[x, k]: f16"),
                         replaced(t, "384", "256")),
                  "K")
                  .block_bytes,
              32768);
    EXPECT_EQ(operation(kernel(replaced(paper(), "Q[q, k]: e4m3, K[x, k]: e4m3", "Q[q, k]: f16, K[x, k]: f16"),
                               replaced(t, "384", "256")),
                        "S", "tensor")
                  .clocks(),
              4);
    EXPECT_EQ(row(kernel(paper(), replaced(t, "subloop d                  32", "subloop d 64")), "O_acc_delta").warpgroup_bytes,
              16384);
    EXPECT_EQ(row(kernel(paper(), replaced(t, "thread  d 8", "thread d 16")), "O_acc_delta_thread").warpgroup_bytes, 4096);
    const std::string narrow = replaced(t, "stream x                   64", "stream x 32");
    EXPECT_EQ(row(kernel(paper(), narrow), "S").warpgroup_bytes, 8192);
    EXPECT_EQ(unit(kernel(paper(), narrow), "exp").operations, 33);
    EXPECT_EQ(kernel(paper(), narrow).budgets[0].block_bytes, 24 * 1024);
    EXPECT_NEAR(kernel(paper(), replaced(t, "q                   384", "q 128")).budgets[0].excess_block / 1024, 131, 1e-9);
    EXPECT_EQ(kernel(replaced(paper(), "k = d = 128", "k = d = 64"), t).budgets[0].block_bytes, 24 * 1024);
    EXPECT_EQ(row(kernel(paper(), t + "storage K operand, stages 3\n"), "K").block_bytes, 24576);
    EXPECT_DOUBLE_EQ(unit(kernel(paper(), t + "overhead exp 66  the paper's §6.1\n"), "exp").with_overhead(), 4.0625 * 1.66);
    // B.0.1: what a chunk loads through a core's share of the pipe, beside the clocks of a row.
    const Machine pcie = load_machine("h100-pcie").value();
    EXPECT_NEAR(kernel(paper(), t, "h100-pcie").throughput.floors.at(0).rows,
                24576 * pcie.cores.value * pcie.clock_hz.value / (total_bandwidth(pcie.levels[1]) * 6), 1e-6);
    EXPECT_NE(kernel(paper(), t, "h100-pcie").throughput.floors.at(0).rows, kernel(paper(), t).throughput.floors.at(0).rows);
    EXPECT_NE(kernel(paper(), t, "h100-pcie").throughput.tensor_flop_per_s, kernel(paper(), t).throughput.tensor_flop_per_s);
}

/// The machine that a schedule's file names, where none is asked for: what follows from it is that machine's.
TEST(Steps, TheScheduleNamesItsMachine) {
    const auto c_of = [&](const std::string& schedule, const std::string& asked) {
        PipelineOptions options;
        options.machine = asked;
        options.until = Pass::size;
        options.schedule_file = std::make_shared<const Source>(Source{"a.schedule", schedule});
        return run_pipeline(std::make_shared<const Source>(Source{"a.nk", paper()}), options);
    };
    const std::string lines = "group q 384\nstream x 64\n";
    const auto named = c_of("machine h800\n" + lines, "");
    ASSERT_TRUE(named.ok()) << render(named.errors());
    EXPECT_EQ(named->machine.name, "h800");
    const auto asked = c_of("machine h800\n" + lines, "h100-pcie");
    EXPECT_EQ(asked->machine.name, "h100-pcie");
    ASSERT_TRUE(asked.ok());
    ASSERT_FALSE(asked->notes.empty());
    EXPECT_EQ(asked->notes[0], "the schedule is for h800, and is read for h100-pcie");
    const auto unknown = c_of("\nmachine h80\n", "");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.errors()[0].code, "unknown-machine");
    EXPECT_EQ(unknown.errors()[0].range.begin, 1u);
    EXPECT_EQ(c_of("machine\n", "").errors()[0].code, "bad-schedule");
    EXPECT_EQ(c_of("machine h800\nmachine h100-pcie\n", "").errors()[0].code, "duplicate-schedule");
    EXPECT_TRUE(c_of("machine h800  a reason\nkernel O\nmachine h800\n", "").ok());
}

/// The program of the second step has its loops, and is what the trials run.
TEST(Steps, ContractionsAddPartsOfTheirColumns) {
    const KernelSteps k = kernel(paper(), tables());
    EXPECT_EQ(k.steps.at(1).name, "subloops");
    EXPECT_THAT(k.steps.at(1).program, testing::HasSubstr("for each part of d (32 at a time):\n"));
    EXPECT_EQ(k.steps.at(1).changes.at(0).what, "O_acc over d, 32 at a time");
    // Around a sum that has no such axis the same loop adds it once for every part, which the trials find.
    const Compilation c = costed::compile(paper(), "h100-sxm5");
    const AxisId d = costed::axis(c, "d");
    TileKernel parts = with_subloops_along(c.derived.diagram, expand(c.derived).kernels[0], {d});
    EXPECT_EQ(tried_on_small_sizes(c.derived, {parts}, 12), "");
    for (TileStatement& s : parts.body) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (!loop) continue;
        TileLoop wrong = **loop;
        for (TileStatement& inner : wrong.body)
            if (const auto* sum = std::get_if<Compute>(&inner); sum && parts.variables[sum->variable].name == "P_Z_acc")
                inner = std::make_shared<const TileLoop>(TileLoop{d, {}, {inner}, true});
        s = std::make_shared<const TileLoop>(std::move(wrong));
    }
    EXPECT_NE(tried_on_small_sizes(c.derived, {parts}, 12), "");
    // A product that stays on the tensor cores is added in parts as well.
    const KernelSteps product = kernel(
        "mm(A[m, k]: f16, B[k, n]: f16) -> C[m, n]: f16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\nsizes m = n = k = "
        "4096\n",
        "group m 128\ngroup n 128\nstream k 64\nsubloop n 32\n");
    EXPECT_THAT(product.steps.at(1).program, testing::HasSubstr("for each part of n (32 at a time):"));
    for (const PaperStep& step : product.steps) EXPECT_EQ(step.fault, "") << step.name;
}

TEST(Steps, AccumulatorsTakeAChunkInParts) {
    const KernelSteps k = kernel(
        paper(), "group q 128\nstream x 128\nsubloop x 64\nprecision weight f16\nprecision O_acc f16\n");
    EXPECT_EQ(row(k, "S").size, "w_q×s_x");
    EXPECT_EQ(row(k, "S").warpgroup_bytes, 32768);
    EXPECT_EQ(row(k, "weight").size, "t_q×u_x");
    EXPECT_EQ(row(k, "weight").warpgroup_bytes, 16384);
    EXPECT_EQ(unit(k, "exp").operations, 128 + 2);                    // s_x + s_x/u_x
    EXPECT_EQ(operation(k, "O_acc", "fma").operations, 2 * 128 * 2);  // 2·d·(s_x/u_x)
    for (const PaperStep& step : k.steps) EXPECT_EQ(step.fault, "") << step.name;
}

TEST(Steps, OverheadsAreNamedInputs) {
    const KernelSteps k = kernel(
        costed::attention_f16 + std::string("sizes q = x = 16384, k = d = 128\n"),
        "group q 128\nstream x 128\nprecision weight f16\nprecision O_acc f16\noverhead exp 66  §6.1\n");
    EXPECT_EQ(unit(k, "exp").overhead.source, "§6.1");
    EXPECT_NEAR(k.throughput.overlap.tensor_clocks / k.throughput.overlap.within_group, 0.75, 0.005);
}

TEST(Steps, EveryDivisorNamesItsCause) {
    const KernelSteps k = kernel(paper(), tables());
    std::map<std::string, std::int64_t> merged;
    for (const auto& [size, multiple] : k.divisors.merged()) {
        merged[to_string(size, {"q", "k", "x", "d"})] = multiple;
        EXPECT_NE(k.divisors.causes(size), "");
    }
    EXPECT_EQ(merged.at("w_q"), 128);
    EXPECT_EQ(merged.at("s_x"), 16);  // lcm(wgmma n 8, wgmma k 16)
    EXPECT_EQ(merged.at("u_d"), 8);
    EXPECT_EQ(merged.at("k"), 128);  // whole lines of FP8
}

void expect_error(const std::string& text, const std::string& schedule, const std::string& code,
                  const std::string& says, const std::string& hint, const std::string& machine = "h100-sxm5") {
    const auto report = steps(text, schedule, machine);
    ASSERT_FALSE(report.ok()) << schedule;
    const Diagnostic& d = report.errors().front();
    EXPECT_EQ(d.code, code) << d.message;
    EXPECT_NE(d.message.find(says), std::string::npos) << d.message;
    EXPECT_NE((d.hint + d.expected).find(hint), std::string::npos) << d.hint << " / " << d.expected;
}

/// The narrowest of the instruction's accumulators that has all values of the type declared; what is declared, where it
/// is one of them.
TEST(Steps, ProductsAreOfTypesThatTheirInstructionAddsIn) {
    const std::string text =
        "f(Q[q, k]: TYPE, K[x, k]: TYPE, V[x, d]: TYPE) -> O[q, d]: TYPE\n    S[q, x]: SUM = sum(k) Q[q, k] * K[x, k]\n"
        "    O[q, d] = sum(x) S[q, x] * V[x, d]\nsizes q = x = 4096, k = d = 64\n";
    const auto type_of_sum = [&](const std::string& type, const std::string& sum, const std::string& machine) {
        const KernelSteps k = kernel(
            replaced(replaced(replaced(replaced(replaced(text, "TYPE", type), "TYPE", type), "TYPE", type), "TYPE", type),
                     "SUM", sum),
            "", machine);
        return row(k, "S").type;
    };
    EXPECT_EQ(type_of_sum("f16", "f16", "h100-sxm5"), DType::f16);
    EXPECT_EQ(type_of_sum("f16", "f16", "a100-sxm-80gb"), DType::f16);
    EXPECT_EQ(type_of_sum("f16", "f16", "mi300x"), DType::f32);
    EXPECT_EQ(type_of_sum("bf16", "bf16", "h100-sxm5"), DType::f32);
    EXPECT_EQ(type_of_sum("e4m3", "e4m3", "h100-sxm5"), DType::f16);
    EXPECT_EQ(type_of_sum("e4m3", "f32", "h100-sxm5"), DType::f32);
    EXPECT_EQ(type_of_sum("e4m3", "e4m3", "mi300x"), DType::f32);
}

/// What a memory-exceeded error says is near is legal, and the next larger is not.
TEST(Steps, TheNearestLegalChoiceIsOne) {
    for (const auto& [line, rest, step] : {std::tuple{"group q ", "stream x 64\nsubloop d 32\n", 128},
                                           {"group q ", "stream x 128\nprecision weight f16\nsubloop d 32\n", 128},
                                           {"stream x ", "group q 128\nsubloop d 32\n", 0}}) {
        const auto report = steps(paper(), fmt::format("{}2048\n{}", line, rest));
        ASSERT_FALSE(report.ok()) << line << rest;
        const std::string& hint = report.errors().front().hint;
        const std::size_t equals = hint.rfind("= ");
        ASSERT_NE(equals, std::string::npos) << hint;
        const int nearest = std::stoi(hint.substr(equals + 2));
        const auto legal = steps(paper(), fmt::format("{}{}\n{}", line, nearest, rest));
        EXPECT_TRUE(legal.ok()) << hint << render(legal.ok() ? std::vector<Diagnostic>() : legal.errors());
        EXPECT_FALSE(steps(paper(), fmt::format("{}{}\n{}", line, step > 0 ? nearest + step : 2 * nearest, rest)).ok())
            << hint;
    }
}

TEST(Steps, ImpossibleRequestsNameRuleFiguresAndTheNearestLegalChoice) {
    const std::string t = tables();
    expect_error(paper(), replaced(t, "384", "512"), "memory-exceeded",
                 "4 warpgroups of q = 128 take 48.00 KB of SMEM and a block 48.00 KB", "group q = 384");
    expect_error(paper(), "group q 128\nstream x 1024\n", "memory-exceeded", "KB of 227.00 KB", "stream x = 32");
    expect_error(paper(), replaced(t, "stream x                   64", "stream x 60"), "broken-divisor",
                 "s_x = 60 is no multiple of 16: wgmma n 8 of S, wgmma k 16 of O_acc", "48 and 64");
    expect_error(paper(), replaced(t, "warpgroup q               128", "warpgroup q 96"), "broken-divisor",
                 "w_q = 96 is no multiple of 64", "64 and 128");
    expect_error(paper(), replaced(t, "warpgroup q               128", "warpgroup q 100"), "broken-divisor",
                 "g_q = 384 is no multiple of w_q = 100", "group q = 300");
    expect_error(paper(), "group q 300\n", "broken-divisor", "w_q = 100 is no multiple of 64: wgmma m 64 of S",
                 "group q = 256 and group q = 320");
    expect_error(paper(), "group q 131\n", "broken-divisor", "g_q = 131 is no multiple of w_q = 128", "group q = 128");
    expect_error(paper(), replaced(t, "warpgroup q               128", "warpgroup q 512"), "size-out-of-range",
                 "w_q = 512, but a group has 384 values of q", "warpgroup q = 384");
    expect_error(paper(), t + "precision weight_smem e4m3\n", "bad-precision",
                 "weight_smem is multiplied by values of f16", "f16");
    expect_error(paper(), t + "precision weight_smem f32\n", "bad-precision",
                 "no instruction of h100-sxm5 multiplies f32", "f16");
    expect_error(paper(), t + "precision K f16\n", "bad-precision", "K lies in memory as e4m3", "K: f16");
    expect_error(paper(), t + "precision wieght f16\n", "unknown-variable", "no variable 'wieght'",
                 "did you mean weight?");
    expect_error(paper(), t + "precision S f17\n", "bad-precision", "no type 'f17'", "did you mean f16?");
    expect_error(paper(), t + "piece S x 8\n", "bad-schedule", "not passed on in pieces", "passed from one level");
    expect_error(paper(), t + "subloop k 8\n", "no-subloop", "subloop k cuts nothing", "x, d");
    expect_error(paper(), t + "overhead exp 66\n", "missing-source", "has no source", "where the figure comes from");
    expect_error(paper(), t + "overhead sfu 66  §6\n", "unknown-unit", "no unit 'sfu'", "exp");
    expect_error(paper(), t + "subloop d 3000\n", "duplicate-schedule", "fixed twice", "");
    expect_error(paper(), "group q 128\nsubloop d 3000\n", "size-out-of-range", "u_d = 3000, but d has 128 values",
                 "subloop d = 128");
    expect_error(paper(), "group q 128\nstream x 64\nsubloop x 128\n", "size-out-of-range",
                 "u_x = 128, but a chunk has 64 values", "subloop x = 64");
    expect_error(paper(), "group q 128\nstream x 64\npiece weight_smem x 80\n", "size-out-of-range",
                 "a piece of 80 of x, of which weight_smem has 64", "piece weight_smem x 64");
    expect_error(paper(), t + "precision S e4m3\n", "bad-precision",
                 "wgmma of h100-sxm5 adds products of e4m3 in f16 or f32, and not in e4m3", "f16");
    const std::string f16 = costed::attention_f16 + std::string("sizes q = x = 16384, k = d = 128\n");
    expect_error(f16, "precision S f16\n", "bad-precision",
                 "mfma.32x32 of mi300x adds products of f16 in f32, and not in f16", "f32", "mi300x");
    expect_error(f16, "precision S i32\n", "bad-precision", "wgmma of h100-sxm5 adds products of f16 in f16 or f32",
                 "f16 or f32");
    expect_error(paper(), t + "storage K operand, stages 0\n", "bad-schedule", "stages takes a number", "at least 1");
    expect_error(paper(), "kernel P\ngroup q 128\n", "unknown-kernel", "there is no kernel 'P'", "one of O");
    // Neither a smaller group nor a shorter chunk is enough by itself.
    expect_error(paper(), "group q 384\nstream x 64\n", "memory-exceeded", "3 warpgroups of q = 128 take",
                 "the nearest legal choice is group q = 128, stream x = 32");
    EXPECT_TRUE(steps(paper(), "group q 128\nstream x 32\n").ok());
    // What fits is the configuration's question, whatever else is open.
    expect_error(paper(), "group q 1024\n", "memory-exceeded", "8 warpgroups of q = 128 take", "group q = ");
    expect_error(paper(), "stream x 4096\n", "memory-exceeded", "KB of 227.00 KB", "stream x = ");
    expect_error(paper(), t, "not-a-gpu", "generic-cpu is none", "h100-sxm5", "generic-cpu");
    expect_error("f(X[i, j]: f16) -> Y[i]: f16\n    Y[i] = sum(j) X[i, j]\nsizes i = 65536, j = 8\n",
                 "group i 65536\nwarpgroup i 128\nstream j 8\n", "memory-exceeded", "warpgroups", "group i");
}

TEST(Steps, PlansRefuseWhatNoKernelIsMadeFrom) {
    const Compilation c = costed::compile(paper(), "h100-sxm5");
    const auto checked = [&](const std::string& line) {
        const auto items = all_overrides(c.derived, {}, std::make_shared<const Source>(Source{"a.schedule", line + "\n"}));
        return checked_overrides(c.derived, c.extents, items.value());
    };
    const auto expect_refused = [&](const std::string& line, const std::string& code, const std::string& says) {
        const auto choices = checked(line);
        ASSERT_FALSE(choices.ok()) << line;
        const Diagnostic& d = choices.errors().front();
        EXPECT_EQ(d.code, code) << line;
        EXPECT_NE((d.message + "\n" + d.hint).find(says), std::string::npos) << d.message << d.hint;
    };
    expect_refused("warpgroup q 128", "no-warpgroup", "have 64 rows of the tensor cores");
    expect_refused("warpgroup x 64", "not-groupable", "kernel O streams it");
    expect_refused("precision S f16", "only-of-steps", "computes in single precision");
    expect_refused("piece weight_smem x 32", "only-of-steps", "nothing is passed on in pieces");
    expect_refused("issue S 1", "only-of-steps", "slot S order 0");
    expect_refused("turns S, O_acc", "only-of-steps", "ping_pong on");
    EXPECT_TRUE(checked("warpgroup q 64").ok());
}

/// A line beside no kernel's name is for those that have what it names, and an open chunk has whole parts.
TEST(Steps, LinesAreForTheKernelsThatHaveWhatTheyName) {
    const std::string text = file("examples/linear_attention.nk");
    const auto of_x = steps(text, "subloop x 32\n");
    ASSERT_TRUE(of_x.ok()) << render(of_x.errors());
    for (const KernelSteps& k : of_x->kernels)
        for (const CutSize& size : k.sizes)
            if (to_string(size, of_x->axes) == "s_x") {
                EXPECT_EQ(size.size % 32, 0) << k.kernel;
            }
    const auto of_v = steps(text, "storage V operand, stages 3\n");
    ASSERT_TRUE(of_v.ok()) << render(of_v.errors());
    const auto streams_v = std::find_if(of_v->kernels.begin(), of_v->kernels.end(),
                                        [](const KernelSteps& k) { return k.kernel == "Z"; });
    ASSERT_NE(streams_v, of_v->kernels.end());
    EXPECT_EQ(row(*streams_v, "V").stages, 3);
    expect_error(text, "precision W f16\n", "unknown-variable", "no variable 'W'", "");
    expect_error(text, "subloop q 32\n", "no-subloop", "subloop q cuts nothing", "");
}

/// 32 of 128 threads have a row, and its registers; with 192 rows some have two.
TEST(Steps, RegistersAreThoseOfTheBusiestThread) {
    const std::string text =
        "f(X[i, j]: f16, Z[j]: f16) -> Y[i, j]: f16\n    Y[i, j] = X[i, j] + Z[j]\nsizes i = 4096, j = 64\n";
    const KernelSteps few = kernel(text, "group i 32\nwarpgroup i 32\n"),
                      many = kernel(text, "group i 192\nwarpgroup i 192\n");
    EXPECT_EQ(row(few, "Y").warpgroup_bytes, 32 * 64 * 2);
    EXPECT_EQ(few.registers.values, 64 * 2 / 4);
    EXPECT_EQ(many.registers.values, 2 * 64 * 2 / 4);
    // A product of one row takes the registers of the instruction's 64.
    const std::string product =
        "mm(A[m, k]: f16, B[k, n]: f16) -> C[m, n]: f16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\nsizes ";
    const KernelSteps one = kernel(product + "m = 1, n = k = 4096\n", "group n 128\nstream k 64\nprecision C f32\n");
    EXPECT_EQ(one.registers.accumulators, 64);
}

/// Each thread has a row where there are as many as a warpgroup's, whatever threads run the instruction.
TEST(Steps, ARowEachIsOfAWarpgroup) {
    for (const char* machine : {"b200", "a100-sxm-80gb", "h200"})
        for (const auto& [rows, is_said] : {std::pair{128, true}, {64, false}}) {
            const KernelSteps k = kernel(costed::attention_f16 + std::string("sizes q = x = 4096, k = d = 64\n"),
                                         fmt::format("group q {0}\nwarpgroup q {0}\nstream x 32\n", rows), machine);
            std::string causes;
            for (const SizeDivisor& d : k.divisors.constraints)
                if (d.size.letter == 'w') causes += d.cause + "\n";
            EXPECT_EQ(causes.find("128 threads, a row each") != std::string::npos, is_said) << machine << causes;
            EXPECT_EQ(causes.find(" 1 threads"), std::string::npos) << machine << causes;
        }
}

/// The model's own sizes keep their divisors where such sizes fit, and by hand they are legal, whether they do or not.
TEST(Steps, TheModelsSizesKeepTheirDivisors) {
    for (const auto& [name, machine, keeps] : {std::tuple{"layernorm_linear", "h800", true},
                                               {"causal_convolution", "rtx-4090", true},
                                               {"cosine_attention", "h200", false},
                                               {"linear_attention", "mi300x", false}}) {
        const Compilation c = costed::compile(file(fmt::format("examples/{}.nk", name)), machine);
        const auto report = paper_steps(c.derived, c.extents, c.machine, {});
        ASSERT_TRUE(report.ok()) << name << render(report.errors());
        std::string text;
        for (const KernelSteps& k : report->kernels) {
            text += k.schedule;
            for (const auto& [size, multiple] : k.divisors.merged())
                EXPECT_TRUE(!keeps || size.letter == 0 || size.size % multiple == 0 || size.size == c.extents[size.axis])
                    << name << ", " << k.kernel << ": " << to_string(size, report->axes) << " = " << size.size << ", "
                    << k.divisors.causes(size);
        }
        const auto items = parse_schedule_file(std::make_shared<const Source>(Source{"a.schedule", text}));
        const auto again = paper_steps(c.derived, c.extents, c.machine, items.value());
        ASSERT_TRUE(again.ok()) << name << render(again.errors()) << text;
        EXPECT_EQ(to_text(report_of(*again)), to_text(report_of(*report))) << name;
    }
}

/// Where no size that keeps its divisors fits, the model's own break them, and are legal by hand.
TEST(Steps, SizesThatTheModelChoosesAreLegalByHand) {
    const std::string text = costed::attention_f16;
    for (const auto& [machine, sizes] : {std::pair{"h100-sxm5", "sizes q = 40, x = 15, k = 2048, d = 64\n"},
                                         {"mi300x", "sizes q = 16, x = 16, k = 64, d = 2048\n"},
                                         {"rtx-4090", "sizes q = 1, x = 1000, k = 128, d = 2048\n"},
                                         {"mi300x", "sizes q = 1000, x = 65, k = 128, d = 512\n"}}) {
        const KernelSteps own = kernel(text + sizes, "", machine);
        const auto again = steps(text + sizes, own.schedule, machine);
        ASSERT_TRUE(again.ok()) << machine << ", " << sizes << render(again.errors());
        EXPECT_EQ(again->kernels.at(0).schedule, own.schedule) << machine << ", " << sizes;
        EXPECT_EQ(again->kernels.at(0).sizes, own.sizes) << machine << ", " << sizes;
        bool is_any_broken = false;
        for (const auto& [size, multiple] : own.divisors.merged())
            is_any_broken |= size.letter != 0 && size.size % multiple != 0;
        EXPECT_TRUE(is_any_broken) << machine << ", " << sizes;
    }
    // A chunk of 16 fits, so that one of 8 is refused.
    expect_error(text + "sizes q = x = 4096, k = d = 128\n", "group q 64\nstream x 8\n", "broken-divisor",
                 "s_x = 8 is no multiple of 16", "16");
}

/// With the letters that the machine takes and every subloop that there is.
TEST(Steps, TheAssignedProgramVerifiesPrintsAndParsesBack) {
    for (const std::string& text :
         {paper(), file("examples/matmul.nk"), file("examples/causal.nk"), file("examples/layernorm_linear.nk")}) {
        const Compilation c = costed::compile(text, "h100-sxm5");
        TileProgram program = expand(c.derived);
        for (TileKernel& k : program.kernels) k = assign_levels(c.derived.diagram, k, c.machine).kernel;
        std::vector<TileSizes> sizes(program.kernels.size(),
                                     TileSizes{Extents(c.extents.size(), 0), Extents(c.extents.size(), 0), {}});
        for (TileSizes& s : sizes)
            for (const AxisId a : c.extents.ids()) s.stream[a] = std::min<std::int64_t>(c.extents[a], 16);
        const SizedProgram whole = sized(program, c.extents, sizes);
        EXPECT_EQ(verify(whole), std::vector<std::string>{});
        const std::string printed = to_string(whole);
        const auto read = parse_tile(printed, c.derived);
        ASSERT_TRUE(read.ok()) << render(read.errors());
        EXPECT_EQ(to_string(*read), printed);
    }
}

TEST(Steps, ThePrintedScheduleGivesTheSameSteps) {
    for (const std::string& schedule :
         {tables(), std::string("group q 128\nstream x 128\nsubloop x 32\nsubloop d 32\noverhead exp 66  §6.1\n"),
          std::string()}) {
        const auto first = steps(paper(), schedule);
        ASSERT_TRUE(first.ok()) << render(first.errors());
        const auto second = steps(paper(), first->kernels[0].schedule);
        ASSERT_TRUE(second.ok()) << render(second.errors());
        EXPECT_EQ(to_text(report_of(*first)), to_text(report_of(*second)));
        EXPECT_EQ(to_json(report_of(*first)), to_json(report_of(*second)));
    }
}

/// A program that has lost the correction of its accumulator differs from the definition, and is found to.
TEST(Steps, TrialsFindAWrongProgram) {
    const Compilation c = costed::compile(paper(), "h100-sxm5");
    TileProgram program = expand(c.derived);
    EXPECT_EQ(tried_on_small_sizes(c.derived, program.kernels, 12), "");
    const std::function<std::vector<TileStatement>(const std::vector<TileStatement>&)> without =
        [&](const std::vector<TileStatement>& list) {
            std::vector<TileStatement> out = list;
            for (TileStatement& s : out) {
                if (auto* compute = std::get_if<Compute>(&s); compute && compute->carry && *compute->reduce == ReduceOp::sum)
                    compute->carry = read(compute->variable, program.kernels[0].variables[compute->variable].dims);
                if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                    TileLoop other = **loop;
                    other.body = without(other.body);
                    s = std::make_shared<const TileLoop>(std::move(other));
                }
            }
            return out;
        };
    program.kernels[0].body = without(program.kernels[0].body);
    EXPECT_NE(tried_on_small_sizes(c.derived, program.kernels, 12), "");
}

/// Two variables of one place that are alive together are found, whoever put them there.
TEST(Steps, SharedPlacesAreLookedAt) {
    const Compilation c = costed::compile(paper(), "h100-sxm5");
    const TileProgram program = expand(c.derived);
    const Assigned assigned = assign_levels(c.derived.diagram, program.kernels[0], c.machine);
    const Extents none(c.extents.size(), 0);
    StepContext context{
        c.derived.diagram, c.machine, c.extents, {none, none, none}, {{costed::axis(c, "q"), 128}}, 128};
    context.sizes.group[costed::axis(c, "q")] = 128, context.sizes.stream[costed::axis(c, "x")] = 64;
    KernelSteps made;
    made.lives = variable_lives(context, {}, assigned);
    const auto fault = [&] { return narrated_steps(c.derived, program, 0, {}, context, assigned, made).back().fault; };
    EXPECT_EQ(fault(), "");
    const auto named = [&](const std::string& name) -> VariableLife& {
        return *std::find_if(made.lives.begin(), made.lives.end(),
                             [&](const VariableLife& l) { return assigned.kernel.variables[l.variable].name == name; });
    };
    named("delta").slot = named("P_Z_acc").slot;
    EXPECT_EQ(fault(), "P_Z_acc and delta share a place and are alive together");
}

/// Nothing in the steps knows what it is about: other diagrams pass, too, with every step tried.
TEST(Steps, OfOtherDiagrams) {
    struct Case {
        std::string text, schedule;
    };
    for (const Case& c : {Case{file("examples/multihead.nk"), ""},
                          {file("examples/matmul_chain.nk"), ""},
                          {file("examples/layernorm.nk"), ""},
                          {file("examples/rotary.nk"), ""},
                          {file("examples/sliding_window.nk"), ""},
                          {"mm(A[m, k]: f16, B[k, n]: f16) -> C[m, n]: f16\n    C[m, n] = sum(k) A[m, k] * B[k, "
                           "n]\nsizes m = n = k = 4096\n",
                           "group m 128\ngroup n 128\nstream k 64\n"}}) {
        const auto report = steps(c.text, c.schedule);
        ASSERT_TRUE(report.ok()) << render(report.errors());
        for (const KernelSteps& k : report->kernels)
            for (const PaperStep& step : k.steps) EXPECT_EQ(step.fault, "") << k.kernel << ": " << step.name;
    }
}

/// What goes on from itself alone stays where the tensor cores have it, and leaves through the core's memory.
TEST(Steps, AMatmulAccumulatesOnTheMatrixUnit) {
    const KernelSteps k = kernel(
        "mm(A[m, k]: f16, B[k, n]: f16) -> C[m, n]: f16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\nsizes m = n = k = "
        "4096\n",
        "group m 128\ngroup n 128\nstream k 64\nprecision C f32\nprecision C_smem f16\n");
    EXPECT_EQ(row(k, "C").at, HeldAt::fragments);
    EXPECT_EQ(row(k, "C").warpgroup_bytes, 65536);
    EXPECT_EQ(row(k, "C_smem").at, HeldAt::memory);
    EXPECT_EQ(row(k, "C_smem").warpgroup_bytes, 32768);
    EXPECT_EQ(k.registers.accumulators, 128);
    EXPECT_FALSE(k.registers.total() > k.registers.limit);
    const KernelSteps wide = kernel(
        "mm(A[m, k]: f16, B[k, n]: f16) -> C[m, n]: f16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\nsizes m = n = k = "
        "4096\n",
        "group m 128\ngroup n 256\nstream k 64\nprecision C f32\nprecision C_smem f16\n");
    EXPECT_TRUE(wide.registers.total() > wide.registers.limit);  // 256 registers of accumulators alone
}

}  // namespace
}  // namespace napkin::test_steps
