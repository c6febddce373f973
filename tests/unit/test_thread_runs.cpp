// Statements by runs: where threads find their values in memory, and where a tile in shared memory is better.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "schedule/thread_runs.hpp"
#include "support/parsed.hpp"

namespace napkin::test_thread_runs {
namespace {

Plan planned(const std::string& text) {
    const Diagram diagram = parsed(text);
    const Extents extents = bind_sizes(diagram).value();
    const Machine machine = load_machine("h200").value();
    const Derived form = choose_form(derive(diagram).value(), extents, machine, {}, nullptr, FormTimes::of_plans);
    const auto plan = choose_plan(form, extents, machine, {});
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return *plan;
}

/// Names of the variables that threads access in runs.
std::vector<std::string> in_runs(const Plan& plan) {
    std::vector<std::string> out;
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    for (const VariableId v : kernel.layouts.ids())
        if (kernel.is_view(v) && kernel.layout(v).in_runs) out.push_back(kernel.variable(v).name);
    return out;
}

TEST(ThreadRuns, ReadHalvesOfRowsInPlace) {
    const Plan plan = planned(
        "f(X[t, h, c]: bf16, A[t, c]: bf16, B[t, c]: bf16) -> Y[t, h, c]: bf16\n"
        "    Y[t, h, c] = X[t, h, c] * A[t, c] + where(c < size(c) // 2, -1, 1) * X[t, h, (c + size(c) // 2) % "
        "size(c)] * "
        "B[t, c]\nsizes t = 8192, h = 32, c = 128\n");
    EXPECT_THAT(in_runs(plan), testing::UnorderedElementsAre("X", "A", "X_2", "B", "Y"));
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    EXPECT_EQ(kernel.held_values, 0) << "nothing takes shared memory";
    for (const Step& step : kernel.steps) EXPECT_FALSE(step.synchronizes);
}

TEST(ThreadRuns, ReadAcrossRowsThroughSharedMemory) {
    const Plan plan = planned("f(X[r, c]: bf16) -> Y[c, r]: bf16\n    Y[c, r] = X[r, c]\nsizes r = 32768, c = 4096\n");
    EXPECT_THAT(in_runs(plan), testing::ElementsAre("Y"));
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    for (const VariableId v : kernel.layouts.ids())
        if (kernel.variable(v).name == "X") {
            EXPECT_EQ(kernel.layout(v).strides.at(0) % 2, 1) << "values of a column lie in different banks";
        }
}

/// Where indices go on by one, though they are no sums: a run crosses no multiple of its own length.
TEST(ThreadRuns, StepsAreThoseOfTheirValues) {
    const Plan plan = planned(
        "f(X[t, c]: bf16) -> Y[t, c]: bf16\n    Y[t, c] = X[t, (c + 64) % 128] + X[t, (c + 5) % 128] + X[t, c // 8] + "
        "X[t, c // 4] + X[t, 127 - c] + X[t, 64 * (c // 64) + c % 64]\nsizes t = 8192, c = 128\n");
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    const ThreadRun run{*kernel.program->diagram.find_axis("c"), 8};
    std::vector<RunStep> steps;
    for (const Step& step : kernel.steps)
        for (const Read* r : step.reads) steps.push_back(run_step(kernel, *r, run, step.scope));
    EXPECT_THAT(steps, testing::ElementsAre(RunStep::beside, RunStep::each, RunStep::same, RunStep::each, RunStep::each,
                                            RunStep::beside));
}

}  // namespace
}  // namespace napkin::test_thread_runs
