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

}  // namespace
}  // namespace napkin::test_placed_steps
