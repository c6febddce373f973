// One attention on every GPU of machines/: the six steps and the plan with that machine's own instructions, and what
// its rates rest on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costed.hpp"
#include "lower/rules.hpp"
#include "machine/figures.hpp"
#include "machine/rate_sources.hpp"
#include "plan/choose.hpp"
#include "schedule/fragments.hpp"
#include "steps/report.hpp"
#include "support/text.hpp"

namespace napkin::test_every_machine {
namespace {

const std::string attention =
    "attention(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16\n"
    "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
    "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
    "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
    "sizes h = 16, q = x = 4096, k = d = 128\n";

const std::vector<std::pair<std::string, std::string>> instructions = {{"a100-sxm-80gb", "mma"}, {"h100-pcie", "wgmma"},
                                                                       {"h800", "wgmma"},        {"b200", "tcgen05"},
                                                                       {"mi300x", "mfma.32x32"}, {"rtx-4090", "mma"}};

TEST(EveryMachine, HasStepsWithItsInstructions) {
    for (const auto& [machine, instruction] : instructions) {
        const Compilation c = costed::compile(attention, machine);
        const auto report = paper_steps(c.derived, c.extents, c.machine, {});
        ASSERT_TRUE(report.ok()) << machine << render(report.errors());
        for (const KernelSteps& kernel : report->kernels) {
            for (const PaperStep& step : kernel.steps) EXPECT_EQ(step.fault, "") << machine << ": " << step.name;
            for (const LevelBudget& level : kernel.budgets)
                EXPECT_GE(level.fit(), static_cast<double>(kernel.num_warpgroups)) << machine << ": " << level.level;
            EXPECT_GT(kernel.throughput.lower_bound(), 0) << machine;
        }
        const std::string text = to_text(report_of(*report));
        EXPECT_THAT(text, testing::HasSubstr("a contraction of f16: " + instruction)) << machine;
    }
}

TEST(EveryMachine, HasALegalPlanWhereKernelsAreEmittedForIt) {
    for (const auto& [machine, instruction] : instructions) {
        const Compilation c = costed::compile(attention, machine);
        const auto plan = choose_plan(c.derived, c.extents, c.machine);
        if (c.machine.threads->warp_threads.value != 32) {
            ASSERT_FALSE(plan.ok()) << machine;
            EXPECT_EQ(plan.errors()[0].code, "no-emitter");
            continue;
        }
        ASSERT_TRUE(plan.ok()) << machine << render(plan.errors());
        for (const KernelPlan& kernel : plan->kernels) {
            EXPECT_TRUE(verify(kernel.scheduled).empty()) << machine << join(verify(kernel.scheduled), "\n");
            EXPECT_GT(kernel.time.seconds, 0) << machine;
            EXPECT_FALSE(kernel.time.busy.front().what.empty()) << machine;
            for (const Step& step : kernel.scheduled.steps) {
                const auto product = mma_product(kernel.scheduled, step);
                EXPECT_TRUE(!product ||
                            std::any_of(c.machine.instructions.begin(), c.machine.instructions.end(),
                                        [&](const Instruction& i) { return i.name == product->instruction->name; }))
                    << machine;
            }
        }
    }
}

TEST(EveryMachine, SaysWhatItsRatesRestOn) {
    const auto text = [](const std::string& machine) { return rate_sources(load_machine(machine).value()).text(); };
    EXPECT_EQ(text("h200"), "measured");
    EXPECT_EQ(text("b200"), "1 of 5 measured");
    EXPECT_EQ(text("generic-cpu"), "nominal");
    // As measured on another machine is not as measured.
    Machine machine = load_machine("h200").value();
    for (Level& level : machine.levels)
        if (level.sustained.known()) level.sustained = estimated(level.sustained.value, "as an H200's");
    EXPECT_NE(rate_sources(machine).text(), "measured");
    const RateSources all = rate_sources(load_machine("h200").value()), fewer = rate_sources(machine);
    EXPECT_EQ(fewer.known, all.known);
    EXPECT_LT(fewer.measured, all.measured);
    // What napkin machines measure writes.
    Machine host = load_machine("generic-cpu").value();
    for (Level& level : host.levels)
        level.bandwidth_bytes_per_s.origin = origin_of("measured 2026-11-20 by napkin machines measure: a copy");
    EXPECT_EQ(rate_sources(host).text(), "measured");
}

}  // namespace
}  // namespace napkin::test_every_machine
