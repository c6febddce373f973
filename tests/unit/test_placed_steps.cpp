// The paper's steps of kernels that are planned: their places, charts and schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "costed.hpp"
#include "plan/choose.hpp"
#include "plan/overrides.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "stepped.hpp"
#include "steps/report.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_placed_steps {
namespace {

using stepped::file;
using stepped::operation;
using stepped::row;
using stepped::unit;

/// Overheads and units of a planned kernel are read into its Table 3 and chart; the plan stays the same.
TEST(Steps, OverheadsOfAPlannedKernel) {
    const Compilation c = costed::compile(file("examples/schedules/matmul.nk"), "h100-sxm5");
    const std::string schedule = file("examples/schedules/8-specialised.schedule");
    const auto steps_of = [&](const std::string& lines) {
        PlanOptions options;
        options.file = std::make_shared<const Source>(Source{"a.schedule", schedule + lines});
        const auto plan = choose_plan(c.derived, c.extents, c.machine, {}, options);
        EXPECT_TRUE(plan.ok()) << render(plan.errors());
        return placed_steps(*plan, c.machine, parse_schedule_file(options.file).value());
    };
    const auto plain = steps_of(""), with = steps_of("overhead tensor 25  a test\nunits tensor\n");
    ASSERT_TRUE(plain.ok() && with.ok());
    const KernelSteps &a = plain->kernels[0], &b = with->kernels[0];
    EXPECT_EQ(unit(b, "tensor").overhead.source, "a test");
    EXPECT_DOUBLE_EQ(unit(b, "tensor").with_overhead(), 1.25 * unit(a, "tensor").clocks);
    EXPECT_EQ(b.charts.at(0).chart.units.size(), 1u);
    EXPECT_NEAR(b.charts.at(0).tensor_flop_per_s / (a.throughput.tensor_flop_per_s / 1.25), 1, 1e-6);
    EXPECT_NE(b.schedule.find("  overhead tensor 25  a test\n  units tensor\n"), std::string::npos) << b.schedule;
    const auto wrong = steps_of("units tensro\n");
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.errors()[0].code, "unknown-unit");
}

// Softmax goes over its rows twice: each of its streams has the order of its own statements.
TEST(Steps, OfAPlannedKernelOfTwoStreamsHaveAChartOfEach) {
    const Compilation c = costed::compile(
        "rows(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\nsizes r = 64, c = 100000\n", "h100-sxm5");
    const auto plan = choose_plan(c.derived, c.extents, c.machine, {}, {});
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    for (const KernelSteps& k : placed_steps(*plan, c.machine).kernels)
        for (const StreamChart& chart : k.charts) EXPECT_EQ(verify(chart.chart), std::vector<std::string>());
}

/// In FP32 every tile of attention lies in the core's memory, where what is not alive together shares a place: all rows
/// together would not fit.
TEST(Steps, OfAPlannedKernelFitWhereItsVariablesShareThem) {
    const Compilation c = costed::compile(file("examples/attention.nk"), "h100-sxm5");
    const auto plan = choose_plan(c.derived, c.extents, c.machine, {}, {});
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const KernelSteps k = placed_steps(*plan, c.machine).kernels.at(0);
    double rows = 0;
    for (const ConfigurationRow& r : k.configuration)
        if (r.at == HeldAt::memory) rows += static_cast<double>(r.block_bytes + r.warpgroup_bytes * k.num_warpgroups);
    const LevelBudget& memory = k.budgets.at(0);
    const double held = memory.block_bytes + memory.warpgroup_bytes * static_cast<double>(k.num_warpgroups);
    EXPECT_GT(rows, memory.capacity_bytes);
    EXPECT_EQ(held, static_cast<double>(plan->kernels[0].scheduled.arena_bytes()));
    EXPECT_GE(memory.excess_block, 0);
    EXPECT_EQ(memory.what, "alive at a time");
}

/// A kernel of two warpgroups of 64 rows, 256 columns and four stages, with its results' way out through two boxes a
/// warp.
TEST(Steps, OfAPlannedKernelAreItsSchedules) {
    const Compilation c = costed::compile(file("examples/schedules/matmul.nk"), "h100-sxm5");
    PlanOptions options;
    options.file = std::make_shared<const Source>(
        Source{"a.schedule", file("examples/schedules/8-specialised.schedule")});
    EXPECT_TRUE(is_of_a_kernel(parse_schedule_file(options.file).value()));
    EXPECT_FALSE(is_of_a_kernel(
        parse_schedule_file(
            std::make_shared<const Source>(Source{"a.schedule", file("examples/schedules/napkin-table-1.schedule")}))
            .value()));
    const auto plan = choose_plan(c.derived, c.extents, c.machine, {}, options);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const KernelSteps k = placed_steps(*plan, c.machine).kernels.at(0);
    EXPECT_EQ(k.num_warpgroups, 2);
    EXPECT_EQ(row(k, "C").warpgroup_bytes, 64 * 256 * 4);
    EXPECT_EQ(row(k, "C").type, DType::f32);
    EXPECT_EQ(row(k, "A").warpgroup_bytes, 4 * 64 * 64 * 2);
    EXPECT_EQ(row(k, "B").block_bytes, 4 * 64 * 256 * 2);
    EXPECT_EQ(row(k, "C on its way out").warpgroup_bytes, 4 * 2 * 16 * 128);
    // What the rows add up to is the arena, but for barriers and what aligns it.
    const double held = k.budgets[0].block_bytes + 2 * k.budgets[0].warpgroup_bytes;
    EXPECT_NEAR(held, static_cast<double>(plan->kernels[0].scheduled.arena_bytes()), operand_alignment + 256);
    EXPECT_EQ(k.budgets[0].what, "total");
    EXPECT_EQ(k.registers.accumulators, 128);
    EXPECT_EQ(k.registers.limit, 232);
    EXPECT_LE(k.registers.total(), k.registers.limit);
    EXPECT_EQ(operation(k, "C", "tensor").operations, 2 * 256 * 64);
    EXPECT_EQ(k.steps.size(), 6u);
    for (const PaperStep& step : k.steps) EXPECT_EQ(step.fault, "") << step.name;
    std::map<std::string, std::int64_t> merged;
    for (const auto& [size, multiple] : k.divisors.merged())
        merged[to_string(size, names_of(c.derived.diagram.axes))] = multiple;
    EXPECT_EQ(merged.at("s_k"), 64);  // whole lines, and wgmma's k
    EXPECT_EQ(merged.at("w_m"), 64);
}

/// The kernel of the paper's §5 has its Table 2 in the core's memory, and Table 3's throughput.
TEST(Steps, OfTheKernelOfSectionFiveAreThePapersTables) {
    const Compilation c = costed::compile(file("examples/schedules/napkin-section-5.nk"), "h100-sxm5");
    PlanOptions options;
    options.file = std::make_shared<const Source>(
        Source{"a.schedule", file("examples/schedules/napkin-section-5.schedule")});
    const auto plan = choose_plan(c.derived, c.extents, c.machine, {}, options);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const KernelSteps k = placed_steps(*plan, c.machine).kernels.at(0);
    EXPECT_EQ(k.num_warpgroups, 3);
    EXPECT_EQ(k.budgets[0].block_bytes, 48 * 1024);
    EXPECT_EQ(k.budgets[0].warpgroup_bytes, 48 * 1024);
    EXPECT_EQ(k.budgets[0].excess_block, 35 * 1024);
    EXPECT_NEAR(k.throughput.tensor_flop_per_s / 1e15, 1.32, 0.005);
    // Two tiles of 64 rows, each with sums of 64 registers, and with scores of 32 that single precision takes.
    EXPECT_EQ(k.registers.accumulators, 2 * (64 + 32));
    EXPECT_EQ(k.registers.total() - k.registers.limit, static_cast<double>(spilled_registers(plan->kernels[0].scheduled)));
    EXPECT_EQ(k.instructions, (std::vector<std::string>{"wgmma e4m3", "wgmma f16"}));
    for (const PaperStep& step : k.steps) EXPECT_EQ(step.fault + step.unkept, "") << step.name;
}

/// Columns of the product lie along the axis that warpgroups share: its rows are those of the other operand.
TEST(Steps, OfATurnedProductHaveTheInstructionsRows) {
    const Compilation c = costed::compile(
        "mm(A[m, k]: f16, B[k, n]: f16) -> C[m, n]: f16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\nsizes m = 256, n = k "
        "= 1024\n",
        "h200");
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"a.schedule", "mma_m n\nwarps 4\ngroup m 32\n"});
    const auto plan = choose_plan(c.derived, c.extents, c.machine, {}, options);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const KernelSteps k = placed_steps(*plan, c.machine).kernels.at(0);
    std::map<std::string, std::string> causes;
    for (const SizeDivisor& d : k.divisors.constraints)
        causes[to_string(d.size, names_of(c.derived.diagram.axes))] += d.cause + "\n";
    EXPECT_THAT(causes["w_n"], testing::HasSubstr("wgmma m 64 of C"));
    EXPECT_THAT(causes["g_m"], testing::HasSubstr("wgmma n 8 of C"));
    const std::int64_t chunk = plan->kernels[0].scheduled.schedule.stream.begin()->second.value;
    EXPECT_EQ(operation(k, "C", "tensor").operations, 2.0 * 32 * static_cast<double>(chunk));
}

/// Kernels for a B200 multiply by warps, with 16 rows each, whatever else the machine has.
TEST(Steps, OfAPlannedKernelHaveTheDivisorsOfItsOwnInstruction) {
    const Compilation c = costed::compile(costed::attention_f16 + std::string("sizes q = x = 4096, k = d = 128\n"),
                                          "b200");
    const auto plan = choose_plan(c.derived, c.extents, c.machine, {}, {});
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const KernelSteps k = placed_steps(*plan, c.machine).kernels.at(0);
    ASSERT_FALSE(k.instructions.empty());
    for (const SizeDivisor& d : k.divisors.constraints)
        if (d.cause.find(" B lines of ") == std::string::npos) {
            EXPECT_TRUE(d.cause.starts_with(k.instructions[0].substr(0, k.instructions[0].find(' ') + 1))) << d.cause;
        }
}

}  // namespace
}  // namespace napkin::test_placed_steps
